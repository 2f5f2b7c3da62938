"""The derivatives of scans and of reductions of segments are those of central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._recording.record_op import apply
from fusewire_protos.ops.catalogue import BY_NAME
from tests.client.api.gradients.differences import Case, check, check_twice, drawn

X = drawn(2, 5, 3)
PLACES = np.array([-1, 0, 0, 2, 2])  # the first is no place, and 1 has no element
ALL_IN_ONE = np.zeros(5, np.int64)


def _scan(name: str) -> list[Case]:
    return [
        Case(lambda x, axis=axis: apply(BY_NAME[name], (x,), (axis,)), (values,))
        for axis, values in ((0, X), (1, X), (2, X), (0, drawn(1)), (0, drawn(0)))
    ]


def _segments(name: str) -> list[Case]:
    def reduced(axis: int, places: Any, count: int) -> Callable[..., Any]:
        return lambda x: apply(BY_NAME[name], (x, x.session.array(places)), (axis, count))

    return [
        Case(reduced(1, PLACES, 3), (X,)),
        Case(reduced(0, ALL_IN_ONE, 1), (drawn(5, 2),)),
        Case(reduced(0, np.arange(4), 4), (drawn(4),)),
        Case(reduced(0, np.zeros(0, np.int64), 2), (drawn(0, 2),)),
    ]


CASES: dict[str, list[Case]] = {
    **{name: _scan(name) for name in ("cumulative_sum", "cumulative_prod", "cumulative_max", "cumulative_min")},
    **{name: _segments(name) for name in ("segment_sum", "segment_prod", "segment_min", "segment_max")},
}


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_that_of_differences(session: fw.Session, name: str) -> None:
    for case in CASES[name]:
        check(session, case.function, *case.values)


@pytest.mark.parametrize("name", ["cumulative_prod", "segment_prod"])
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_products_with_zeros_have_their_derivatives(session: fw.Session, name: str, zeros: int) -> None:
    values = drawn(5) + 2
    values[1 : 1 + zeros] = 0
    attributes: Any = {"cumulative_prod": (0,), "segment_prod": (0, 3)}[name]

    def function(x: fw.Array) -> Any:
        places = [] if name == "cumulative_prod" else [session.array(np.array([0, 0, 0, 0, 2]))]
        return apply(BY_NAME[name], (x, *places), attributes)

    check(session, function, values)
    check_twice(session, function, values)


def test_the_first_of_equal_elements_gets_the_cotangent_of_a_running_extreme(session: fw.Session) -> None:
    x = session.array(np.array([1.0, 3.0, 3.0, 2.0]))
    assert fw.grad(lambda x: apply(BY_NAME["cumulative_max"], (x,), (0,)).sum())(x).tolist() == [1, 3, 0, 0]


def test_equal_elements_of_a_segment_share_the_cotangent(session: fw.Session) -> None:
    x, places = session.array(np.array([3.0, 3.0, 1.0])), session.array(np.zeros(3, np.int64))
    gradient = fw.grad(lambda x: apply(BY_NAME["segment_max"], (x, places), (0, 1)).sum())(x)
    assert gradient.tolist() == [0.5, 0.5, 0]


def test_what_sorts_is_differentiated_through_its_places(session: fw.Session) -> None:
    check(session, lambda x: fw.sort(x, axis=1), X)
    check(session, lambda x: fw.median(x, axis=2), X)
    check(session, lambda x: fw.sort(x, axis=0, descending=True), X)
