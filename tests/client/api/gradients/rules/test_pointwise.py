"""The derivatives of pointwise ops are those of central differences, also of operands that broadcast."""

from __future__ import annotations

import numpy as np
import pytest

import fusewire as fw
from tests.client.api.gradients.differences import Case, check, check_twice, drawn
from tests.patience import HANGS_S

X, Y = drawn(3, 4), drawn(3, 4, seed=1)
POSITIVE = drawn(3, 4, low=0.3, high=2.0)
ROW, COLUMN, NUMBER = drawn(4, seed=2, low=0.4, high=1.7), drawn(3, 1, seed=3), np.array(0.7)
ONES = np.array([-2.5, -0.4, 0.3, 2.1])

CASES: dict[str, list[Case]] = {
    "add": [Case(lambda x, y: x + y, (X, Y)), Case(lambda x, y: x + y, (ROW, COLUMN)), Case(lambda x: 2 + x, (X,))],
    "subtract": [Case(lambda x, y: x - y, (X, ROW)), Case(lambda x, y: x - y, (NUMBER, X))],
    "multiply": [
        Case(lambda x, y: x * y, (X, COLUMN)),
        Case(lambda x: x * x, (X,)),
        Case(lambda x: 3 * x * 0.5, (X,)),
    ],
    "divide": [Case(lambda x, y: x / y, (X, ROW)), Case(lambda x: 2 / x, (POSITIVE,)), Case(lambda x: x / 4, (X,))],
    "remainder": [Case(lambda x, y: x % y, (X * 5, ROW)), Case(lambda x: x % 0.7, (X,))],
    "power": [
        Case(lambda x, y: x**y, (POSITIVE, Y)),
        Case(lambda x: x**3, (X,)),
        Case(lambda x: x**2.5, (POSITIVE,)),
        Case(lambda x: x**0, (X,)),
        Case(lambda x: 2.0**x, (X,)),
        Case(lambda x: x**-1.5, (POSITIVE,)),
    ],
    "minimum": [Case(fw.minimum, (X, Y)), Case(lambda x: fw.minimum(x, 0.2), (X,))],
    "maximum": [Case(fw.maximum, (X, COLUMN)), Case(lambda x: fw.maximum(0.2, x), (X,))],
    "atan2": [Case(fw.atan2, (X, ROW)), Case(lambda x: fw.atan2(x, 1.5), (X,))],
    "clip": [
        Case(lambda x: fw.clip(x, -0.5, 0.4), (X,)),
        Case(fw.clip, (X, COLUMN - 0.4, ROW - 0.9)),
    ],
    "where": [
        Case(lambda x, y: fw.where(x > 0, x * 2, y), (X, ROW)),
        Case(lambda x: fw.where(x > 0, x, 1.0), (X,)),
    ],
    "negative": [Case(lambda x: -x, (X,))],
    "abs": [Case(abs, (X,))],
    "square": [Case(fw.square, (X,))],
    "sqrt": [Case(fw.sqrt, (POSITIVE,))],
    "rsqrt": [Case(fw.rsqrt, (POSITIVE,))],
    "exp": [Case(fw.exp, (X,))],
    "expm1": [Case(fw.expm1, (X,))],
    "log": [Case(fw.log, (POSITIVE,))],
    "log1p": [Case(fw.log1p, (POSITIVE,))],
    "exp2": [Case(fw.exp2, (X,))],
    "log2": [Case(fw.log2, (POSITIVE,))],
    "log10": [Case(fw.log10, (POSITIVE,))],
    "sin": [Case(fw.sin, (X,))],
    "cos": [Case(fw.cos, (X,))],
    "tan": [Case(fw.tan, (X,))],
    "tanh": [Case(fw.tanh, (X,))],
    "sigmoid": [Case(fw.sigmoid, (X,))],
    "relu": [Case(fw.relu, (X,))],
    "gelu": [Case(fw.gelu, (ONES,))],
    "silu": [Case(fw.silu, (ONES,))],
    "softplus": [Case(fw.softplus, (ONES,))],
    "erf": [Case(fw.erf, (X,))],
    "astype": [Case(lambda x: x.astype(fw.float64) * 2, (X,))],
}
# Second derivatives are elsewhere than 0 for these.
TWICE = ("multiply", "divide", "power", "atan2", "exp", "log", "tanh", "gelu", "softplus", "sqrt", "erf", "where")


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_that_of_differences(session: fw.Session, name: str) -> None:
    for case in CASES[name]:
        check(session, case.function, *case.values)


@pytest.mark.parametrize("name", TWICE)
def test_a_second_derivative_is_that_of_differences(session: fw.Session, name: str) -> None:
    check_twice(session, CASES[name][0].function, *[each.ravel()[:2] for each in CASES[name][0].values])


@pytest.mark.parametrize("choose", [fw.minimum, fw.maximum])
def test_equal_elements_share_the_cotangent(session: fw.Session, choose: object) -> None:
    assert callable(choose)
    x, y = session.array(np.array([1.0, 2.0])), session.array(np.array([1.0, 2.0]))
    for gradient in fw.grad(lambda x, y: choose(x, y).sum(), (0, 1))(x, y):
        assert gradient.tolist() == [0.5, 0.5]


def test_kinks_have_the_derivatives_that_are_documented(session: fw.Session) -> None:
    zero = session.array(0.0)
    assert fw.grad(fw.relu)(zero).item() == 0
    assert fw.grad(abs)(zero).item() == 0
    assert fw.grad(lambda x: fw.clip(x, 0.0, 1.0))(zero).item() == 1


def test_a_power_of_zero_has_finite_derivatives(session: fw.Session) -> None:
    base = session.array(np.array([0.0, 0.0, 0.0]))
    by_base, by_exponent = fw.grad(lambda x, y: (x**y).sum(), (0, 1))(base, session.array(np.array([0.0, 1.0, 2.0])))
    assert by_base.tolist() == [0, 1, 0]
    assert by_exponent.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [fw.float32, fw.float16, fw.bfloat16])
def test_a_gradient_has_the_dtype_of_its_argument(session: fw.Session, dtype: fw.DType) -> None:
    x = session.array(np.array([1.0, 2.0])).astype(dtype)
    wide = session.array(np.array([3.0, 4.0]))
    gradient = fw.grad(lambda x: (x * wide + x.astype(fw.float32)).sum())(x)
    assert gradient.dtype is dtype
    assert gradient.astype(fw.float64).numpy(timeout=HANGS_S).tolist() == [4.0, 5.0]


@pytest.mark.parametrize("constant", [fw.floor, fw.sign, fw.round, lambda x: x.astype(fw.int32).astype(fw.float64)])
def test_what_is_constant_between_jumps_has_no_derivative(session: fw.Session, constant: object) -> None:
    assert callable(constant)
    assert fw.grad(lambda x: (constant(x) + 3 * x).sum())(session.array(X)).numpy().tolist() == [[3.0] * 4] * 3
