"""Operators of arrays, and functions beside Python's integers, mean what they mean in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire as fw
from tests.client.peer import Peer, connect

A = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
B = np.linspace(0.5, 3, 4, dtype=np.float32)


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a + b,
        lambda a, b: 2 - a * b,
        lambda a, b: 1.5 / b + a // b - a % b,
        lambda a, b: b**2 - 2**b,
        lambda a, b: a @ a.T,
        lambda a, b: a @ b,
        lambda a, b: -a + abs(a) + (+a),
        lambda a, b: (a > b) | (a <= 0) & (a != b),
        lambda a, b: ~(a == b) ^ (a >= 1),
        lambda a, b: np.float32(3) * a + a * np.float64(2),
        lambda a, b: B + a - B,
        lambda a, b: a * True,
        lambda a, b: divmod(a, b)[0] + divmod(2, b)[1],
    ],
)
def test_operators_mean_what_they_mean_in_numpy(session: fw.Session, function: Callable[[Any, Any], Any]) -> None:
    actual = function(session.array(A), session.array(B))
    expected = function(A, B)
    assert actual.shape == expected.shape
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize(
    "function",
    [
        lambda i: (i << 1) | (i >> 1) ^ (1 << i) & (64 >> i),
        lambda i: (i << i) + (i >> 100) + (i << True),
        lambda i: i << np.int64(3),
        lambda i: [1, 2, 3] >> i,
        lambda i: np.left_shift(i, 2) - np.right_shift(100, i),
    ],
)
def test_shifts_mean_what_they_mean_in_numpy(session: fw.Session, function: Callable[[Any], Any], dtype: str) -> None:
    integers = np.array([0, 3, 200], dtype)
    np.testing.assert_array_equal(function(session.array(integers)).numpy(), function(integers), strict=True)


def test_a_shift_may_be_assigned(session: fw.Session) -> None:
    x = old = session.array([1, 2])
    x <<= 3
    x >>= 1
    assert (x.tolist(), old.tolist()) == ([4, 8], [4, 8])


def test_a_negative_count_shifts_all_bits_out_as_in_numpy(session: fw.Session) -> None:
    x = session.array(np.array([5, -5]))
    assert [(x << -1).tolist(), (x >> -1).tolist()] == [[0, 0], [0, -1]]


@pytest.mark.parametrize("base", [[2, 3], [True, False], 2], ids=str)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x**-1,
        lambda x: x ** np.int64(-2),
        lambda x: fw.power(x, -1),
        lambda x: fw.pow(x.numpy(), -1) if x.ndim else fw.power(2, -1),
        lambda x: np.power(x, -1),
    ],
)
def test_integers_to_a_negative_power_are_refused_as_in_numpy(
    session: fw.Session, function: Callable[[Any], Any], base: Any
) -> None:
    with pytest.raises(fw.ArgumentError, match=r"to the power of -\d is no integer"):
        function(session.array(base))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_powers_that_numpy_computes_in_another_way_are_its_own_to_the_bit(session: fw.Session, dtype: str) -> None:
    host = np.array([-0.0, 0.0, 0.1, 2.3, 200.0, np.inf], dtype)
    x = session.array(host)
    with np.errstate(all="ignore"):
        for exponent in (2, 2.0, 0.5, -1, -1.0):
            assert (x**exponent).numpy().tobytes() == (host**exponent).tobytes()


def test_integers_are_squared_as_integers(session: fw.Session) -> None:
    x = session.array(np.array([3, 100], np.uint8))
    assert (x**2).dtype is fw.uint8
    assert (x**2).tolist() == [9, 16]
    assert (x**2.0).dtype is fw.float64


def test_floats_have_negative_powers(session: fw.Session) -> None:
    x = session.array(A + 1)
    for actual in (x**-1, x ** np.int32(-1), fw.power(x, -1)):
        np.testing.assert_allclose(actual.numpy(), 1 / (A + 1), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_to_the_negative_powers_in_an_array_have_a_defined_value(session: fw.Session, dtype: str) -> None:
    base = session.array(np.array([-2, -1, -1, 0, 1, 2], dtype))
    exponent = session.array(np.array([-1, -1, -2, -1, -3, -1], dtype))
    assert (base**exponent).tolist() == [0, -1, 1, 0, 1, 0]
    assert (2**exponent).tolist() == [0] * 6


@pytest.mark.parametrize("name", ["lshift", "rshift"])
def test_booleans_shift_as_the_smallest_integers(session: fw.Session, name: str) -> None:
    shifted = getattr(operator, name)(session.array([True, False]), session.array([True, True]))
    assert shifted.dtype is fw.int8
    assert shifted.tolist() == getattr(operator, name)(np.array([True, False]), True).tolist()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x << 1,
        lambda x: 1.5 >> x,
        lambda x: ~x,
        lambda x: x & 1,
        lambda x: x < 1j,
        lambda x: x < np.complex64(1),
        lambda x: x == np.timedelta64(1),
    ],
)
def test_an_operator_without_a_meaning_for_a_dtype_says_so(session: fw.Session, function: Callable[[Any], Any]) -> None:
    with pytest.raises(fw.DtypeError):
        function(session.array(A))


@settings(max_examples=25)
@given(st.sampled_from(["uint8", "int32", "int64", "float16", "float32", "float64", "bool"]), st.sampled_from([2, 2.5]))
def test_python_scalars_are_weak(dtype: str, scalar: float) -> None:
    array = _shared().array(np.ones(3, dtype))
    assert (array * scalar).dtype.name == (np.ones(3, dtype) * scalar).dtype.name


def test_an_integer_that_the_dtype_cannot_hold_overflows(session: fw.Session) -> None:
    with pytest.raises(OverflowError, match="300 is out of range for uint8"):
        session.array(np.ones(3, np.uint8)) + 300


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("other", [300, -1, 2**40, -(2**40), 2**70, -(2**70)])
@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_integers_compare_with_any_python_integer_as_in_numpy(
    session: fw.Session, compare: Callable[[Any, Any], Any], other: int, dtype: str
) -> None:
    host = np.array([[0, 1, 255]], dtype)
    x = session.array(host)
    for actual, expected in ((compare(x, other), compare(host, other)), (compare(other, x), compare(other, host))):
        assert actual.dtype == np.bool_
        np.testing.assert_array_equal(actual.numpy(), expected)


def test_functions_compare_with_any_python_integer_too(session: fw.Session) -> None:
    x = session.array(np.array([0, 255], np.uint8))
    assert fw.less(x, 300).tolist() == fw.less(-1, x).tolist() == [True, True]
    assert fw.greater(x, 300).tolist() == [False, False]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
@pytest.mark.parametrize("other", [256, -1, 2**31, -(2**40), 2**63, -(2**70)])
def test_any_python_integer_divides_and_is_divided_as_in_numpy(session: fw.Session, other: int, dtype: str) -> None:
    host = np.array([[1, 2, 255]]).astype(dtype)
    x = session.array(host)
    for actual, expected in ((x / other, host / other), (other / x, other / host)):
        assert actual.dtype == np.float64
        np.testing.assert_array_equal(actual.numpy(), expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda xp, x: xp.divide(x, 300),
        lambda xp, x: xp.arctan2(x, 300) if xp is np else xp.atan2(x, 300),
        lambda xp, x: xp.logical_and(x, 300),
        lambda xp, x: xp.logical_xor(-1, x),
        lambda xp, x: xp.clip(x, -1, 300),
        lambda xp, x: xp.clip(x, None, 300),
        lambda xp, x: xp.clip(x, 3, 300),
        lambda xp, x: xp.clip(x, 0.5, 300),
        lambda xp, x: xp.clip(x, np.int32(-3), 300),
        lambda xp, x: x.clip(-1, 4),
    ],
)
def test_functions_take_an_integer_beyond_the_dtype_where_numpy_does(
    session: fw.Session, function: Callable[[Any, Any], Any]
) -> None:
    host = np.array([0, 5, 255], np.uint8)
    actual, expected = function(fw, session.array(host)), function(np, host)
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-3)


def test_a_half_is_infinite_for_an_integer_beyond_it(session: fw.Session) -> None:
    assert fw.atan2(session.array(np.array([1], np.uint8)), 70_000).tolist() == [0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 300,
        lambda x: x // 300,
        lambda x: fw.maximum(x, 300),
        lambda x: fw.where(x > 0, x, 300),
        lambda x: x.clip(300, 400),
        lambda x: x / 10**400,
    ],
)
def test_an_integer_beyond_the_dtype_overflows_where_numpy_computes_in_it(
    session: fw.Session, function: Callable[[fw.Array], object]
) -> None:
    with pytest.raises(OverflowError):
        function(session.array(np.ones(3, np.uint8)))


def test_a_list_with_an_integer_beyond_int64_has_no_comparison(session: fw.Session) -> None:
    with pytest.raises(OverflowError, match=f"{2**70} is out of range for int64"):
        session.array([5, 1]) == [2**70, 1]  # noqa: B015  # raises


def test_a_float_array_does_not_compare_with_an_integer_beyond_it(session: fw.Session) -> None:
    with pytest.raises(OverflowError):
        operator.lt(session.array(A), 10**400)


_SHARED: list[Peer] = []


def _shared() -> fw.Session:
    """One session for properties, which cannot take fixtures."""
    if not _SHARED:
        _SHARED.append(connect())
    return _SHARED[0].session
