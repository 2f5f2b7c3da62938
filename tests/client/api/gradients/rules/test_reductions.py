"""The derivatives of reductions, and of what normalises along axes, are those of central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.api.gradients.differences import Case, check, check_twice, drawn

X = drawn(2, 3, 4)
_AXES: list[Any] = [None, 0, -1, (0, 2), ()]


def _over_axes(function: Callable[..., Any], axes: list[Any] = _AXES) -> list[Case]:
    def along(axis: Any, keepdims: bool) -> Callable[..., Any]:
        return lambda x: function(x, axis=axis, keepdims=keepdims)

    cases = [Case(along(axis, False), (X,)) for axis in axes]
    return [*cases, Case(along(1, True), (X,))]


def _along(function: Callable[..., Any]) -> list[Case]:
    return [Case(lambda x, axis=axis: function(x, axis=axis), (X,)) for axis in (-1, 0, (0, 2))]


CASES: dict[str, list[Case]] = {
    "sum": _over_axes(fw.sum),
    "prod": [*_over_axes(fw.prod), Case(fw.prod, (np.zeros((0,)),))],
    "min": _over_axes(fw.min),
    "max": _over_axes(fw.max),
    "mean": _over_axes(fw.mean),
    "var": [*_over_axes(fw.var, [None, 0, (0, 2)]), Case(lambda x: fw.var(x, axis=2, correction=1), (X,))],
    "std": [*_over_axes(fw.std, [None, 0, (0, 2)]), Case(lambda x: fw.std(x, axis=2, correction=1), (X,))],
    "logsumexp": _over_axes(fw.logsumexp),
    "softmax": _along(fw.softmax),
    "log_softmax": _along(fw.log_softmax),
    "layer_norm": [
        *_along(fw.layer_norm),
        Case(lambda x, w, b: fw.layer_norm(x, w, b, epsilon=0.1), (X, drawn(4, seed=1), drawn(4, seed=2))),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_that_of_differences(session: fw.Session, name: str) -> None:
    for case in CASES[name]:
        check(session, case.function, *case.values)


@pytest.mark.parametrize("name", ["prod", "max", "var", "std", "logsumexp", "softmax", "log_softmax", "layer_norm"])
def test_a_second_derivative_is_that_of_differences(session: fw.Session, name: str) -> None:
    check_twice(session, CASES[name][1].function, drawn(3, 2))


@pytest.mark.parametrize("zeros", [1, 2])
def test_a_product_with_zeros_has_its_derivative(session: fw.Session, zeros: int) -> None:
    values = np.array([2.0, 3.0, 4.0])
    values[:zeros] = 0
    check(session, fw.prod, values)
    check_twice(session, fw.prod, values)


@pytest.mark.parametrize("extreme", [fw.min, fw.max])
def test_equal_elements_share_the_cotangent(session: fw.Session, extreme: Callable[..., Any]) -> None:
    x = session.array(np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 2.0]]))
    gradient = fw.grad(lambda x: extreme(x, axis=1).sum())(x).numpy()
    assert np.allclose(gradient.sum(axis=1), 1)
    assert np.allclose(gradient[0], 1 / 3)
