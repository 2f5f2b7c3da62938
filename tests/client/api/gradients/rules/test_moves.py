"""The derivatives of views, joining, reading and writing are those of central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.ops.strided import view_of, with_view
from fusewire._recording.record_op import apply
from fusewire_protos.ops.catalogue import BY_NAME
from tests.client.api.gradients.differences import Case, check, check_twice, drawn

X, Y = drawn(3, 4), drawn(2, 4, seed=1)


def _assigned(key: Any) -> Callable[..., Any]:
    def function(x: fw.Array, value: fw.Array) -> fw.Array:
        y = x * 2
        y[key] = value * value
        return y * y

    return function


def _taken(indices: Any, axis: int) -> Callable[..., Any]:
    return lambda x: apply(BY_NAME["take"], (x, x.session.array(np.array(indices))), (axis,))


def _taken_along(indices: Any, axis: int) -> Callable[..., Any]:
    return lambda x: apply(BY_NAME["take_along_axis"], (x, x.session.array(np.array(indices))), (axis,))


CASES: dict[str, list[Case]] = {
    "reshape": [Case(lambda x: x.reshape(2, 6) * 2, (X,)), Case(lambda x: x[None, :, None], (X,))],
    "transpose": [Case(lambda x: x.transpose(2, 0, 1), (drawn(2, 3, 2),)), Case(lambda x: x.T, (X,))],
    "broadcast_to": [Case(lambda x: fw.broadcast_to(x, (2, 3, 4)), (drawn(3, 1),))],
    "slice": [
        Case(lambda x: x[1:, ::2], (X,)),
        Case(lambda x: x[::-1, 1], (X,)),
        Case(lambda x: x[0] * x[1] + x[-1], (X,)),
        Case(lambda x: x[:0], (X,)),
    ],
    "strided": [
        Case(lambda x: view_of(x, (2, 3), (5, 1), 1), (X,)),
        Case(lambda x: view_of(x, (3, 4), (1, 2), 1), (X,)),
        Case(lambda x: view_of(x, (3, 2), (-2, 1), 6), (X,)),
        Case(lambda x: view_of(x, (2, 3), (0, 1), 2), (X,)),
        Case(lambda x: view_of(x, (0, 3), (1, 1), 0), (X,)),
        Case(lambda x: view_of(x, (2, 2, 2, 3), (4, 4, 1, 1), 0), (X,)),  # windows along two axes
        Case(lambda x: view_of(x, (2, 3, 2), (2, 0, 1), 1), (X,)),
        Case(lambda x: view_of(x, (66, 67), (1, 1), 0) ** 2, (drawn(132),)),  # in more places than are copied
        Case(lambda x: fw.lib.stride_tricks.sliding_window_view(x, 2, axis=1), (X,)),
    ],
    "concat": [
        Case(lambda x, y: fw.concat([x, y * 2, x]), (X, Y)),
        Case(lambda x, y: fw.concat([x, y], axis=1), (drawn(2, 1), Y)),
        Case(lambda x, y: fw.stack([x, y]), (Y, drawn(2, 4))),
    ],
    "assign_slice": [
        Case(_assigned((0,)), (X, drawn(4))),
        Case(_assigned((slice(None), slice(3, 0, -2))), (X, drawn(3, 1))),
        Case(_assigned((1, 2)), (X, np.array(0.3))),
        Case(_assigned(slice(1, 1)), (X, drawn(4))),
    ],
    "assign_strided": [
        Case(lambda x, y: with_view(x, y, (2, 2), (5, 1), 1), (X, drawn(2))),
        Case(lambda x, y: with_view(x, y, (2, 2), (-5, 1), 6), (X, drawn(2, 2))),
    ],
    "take": [
        Case(_taken([0, 2, 2, 9, -5], 0), (X,)),
        Case(_taken([[1, 1], [3, 0]], 1), (X,)),
        Case(_taken(2, 1), (X,)),
        Case(_taken(np.zeros(0, np.int64), 1), (X,)),
        Case(lambda x: x[[0, 2, 0]], (X,)),
        Case(lambda x: x[[0, 2], [1, 1]], (X,)),
        Case(lambda x: x[x.session.array(np.array([-1, 0, 0]))], (X,)),
    ],
    "take_along_axis": [
        Case(_taken_along([[0, 1, 1, 7], [2, 2, 0, -3]], 0), (X,)),
        Case(_taken_along([[0, 0], [1, 2], [3, 3]], 1), (X,)),
        Case(_taken_along([2, 0, 2], 0), (drawn(3),)),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_that_of_differences(session: fw.Session, name: str) -> None:
    for case in CASES[name]:
        check(session, case.function, *case.values)


@pytest.mark.parametrize("name", ["slice", "strided", "concat", "take"])
def test_a_second_derivative_is_that_of_differences(session: fw.Session, name: str) -> None:
    function = CASES[name][0].function
    check_twice(session, lambda *given: function(*[each * each for each in given]), *CASES[name][0].values)


@pytest.mark.parametrize("combination", ["add", "subtract", "multiply", "min", "max", "set"])
def test_what_changes_elements_is_differentiated(session: fw.Session, combination: str) -> None:
    def function(x: fw.Array, value: fw.Array) -> Any:
        places = session.array(np.array([0, 2, 0]))
        return getattr(x.at[places], combination)(value)

    check(session, function, X, drawn(3, 4, seed=7))


def test_an_assignment_under_a_mask_is_differentiated(session: fw.Session) -> None:
    def function(x: fw.Array, value: fw.Array) -> fw.Array:
        y = x * 2
        y[y > 0] = value
        return y

    check(session, function, X, np.array(0.3))


def test_functions_of_moves_are_differentiated(session: fw.Session) -> None:
    check(session, lambda x: fw.roll(x, 1, axis=1) * x, X)
    check(session, lambda x: fw.flip(x) * x, X)
    check(session, lambda x: fw.pad(x, 1), X)
    check(session, lambda x: fw.tile(x, (2, 1)), X)
    check(session, lambda x: fw.repeat(x, 2, axis=0), X)
    check(session, fw.diagonal, X)
    check(session, lambda x: fw.diff(x, axis=1), X)
    check(session, fw.tril, X)
