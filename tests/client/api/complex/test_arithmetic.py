"""Arithmetic, comparisons and tests of complex numbers, held to NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from tests.client.api.complex.agreement import Call, check
from tests.client.api.complex.near import assert_near
from tests.client.peer import connect
from tests.effort import of_a_hundred

CALLS: dict[str, Call] = {
    "sum": lambda xp, z, w, x, i: z + w,
    "sum with floats": lambda xp, z, w, x, i: x + z,
    "sum with integers": lambda xp, z, w, x, i: i + z,
    "sum with a number": lambda xp, z, w, x, i: 1.5 + z,
    "sum of floats with a complex number": lambda xp, z, w, x, i: (1 - 2j) + x,
    "difference": lambda xp, z, w, x, i: 1j - x,
    "product": lambda xp, z, w, x, i: z * w,
    "product of integers": lambda xp, z, w, x, i: i * 1j,
    "product with NumPy's scalar": lambda xp, z, w, x, i: np.complex128(1j) * x,
    "product with NumPy's float": lambda xp, z, w, x, i: np.float64(2) * z,
    "product with NumPy's single": lambda xp, z, w, x, i: x * np.complex64(1j),
    "quotient": lambda xp, z, w, x, i: (z + 1) / (w + 3),
    "quotient of floats": lambda xp, z, w, x, i: x / (2 + 1j),
    "quotient by a number": lambda xp, z, w, x, i: z / 2,
    "quotient of a number": lambda xp, z, w, x, i: 2 / (z + 7),
    "quotient by imaginary numbers": lambda xp, z, w, x, i: x / (1j * (x + 2)),
    "power 2": lambda xp, z, w, x, i: z**2,
    "power 0": lambda xp, z, w, x, i: z**0,
    "power 1": lambda xp, z, w, x, i: z**1,
    "power 7": lambda xp, z, w, x, i: z**7,
    "power -1": lambda xp, z, w, x, i: (z + 7) ** -1,
    "power -3": lambda xp, z, w, x, i: (z + 7) ** -3,
    "power 0.5": lambda xp, z, w, x, i: z**0.5,
    "power 1.5": lambda xp, z, w, x, i: z**1.5,
    "complex power": lambda xp, z, w, x, i: z ** (1 + 1j),
    "powers": lambda xp, z, w, x, i: (z + 7) ** w,
    "power of a number": lambda xp, z, w, x, i: 2**z,
    "complex power of floats": lambda xp, z, w, x, i: (x + 2) ** 1j,
    "powers of zeros": lambda xp, z, w, x, i: (0 * z) ** (w * w),
    "equal": lambda xp, z, w, x, i: z == w,
    "equal to a number": lambda xp, z, w, x, i: z == 1j,
    "equal of floats to a complex number": lambda xp, z, w, x, i: x == 3 + 0j,
    "not_equal": lambda xp, z, w, x, i: z != x,
    "abs": lambda xp, z, w, x, i: abs(z),
    "positive": lambda xp, z, w, x, i: +z,
    "reciprocal": lambda xp, z, w, x, i: xp.reciprocal(z + 7),
    "square of a number": lambda xp, z, w, x, i: xp.square(1j),
    "real": lambda xp, z, w, x, i: xp.real(z),
    "imag": lambda xp, z, w, x, i: z.imag,
    "real of floats": lambda xp, z, w, x, i: xp.real(x),
    "imag of floats": lambda xp, z, w, x, i: xp.imag(x),
    "conj": lambda xp, z, w, x, i: z.conj(),
    "conjugate of floats": lambda xp, z, w, x, i: xp.conjugate(x),
    "angle": lambda xp, z, w, x, i: xp.angle(z),
    "angle in degrees": lambda xp, z, w, x, i: xp.angle(z, deg=True),
    "isreal": lambda xp, z, w, x, i: xp.isreal(z),
    "iscomplex": lambda xp, z, w, x, i: xp.iscomplex(z),
    "isrealobj": lambda xp, z, w, x, i: (xp.isrealobj(z), xp.isrealobj(x)),
    "iscomplexobj": lambda xp, z, w, x, i: (xp.iscomplexobj(z), xp.iscomplexobj(x)),
    "real_if_close": lambda xp, z, w, x, i: xp.real_if_close(z * 0 + 1),
    "real_if_close of others": lambda xp, z, w, x, i: xp.real_if_close(z),
    "isfinite": lambda xp, z, w, x, i: xp.isfinite(z / z),
    "isnan": lambda xp, z, w, x, i: xp.isnan(z / (0 * z)),
    "isinf": lambda xp, z, w, x, i: xp.isinf(z + np.inf),
    "logical_and": lambda xp, z, w, x, i: xp.logical_and(z, x),
    "logical_xor": lambda xp, z, w, x, i: xp.logical_xor(z, 1j),
    "logical_not": lambda xp, z, w, x, i: xp.logical_not(z),
    "isclose": lambda xp, z, w, x, i: xp.isclose(z, z + 1e-9),
    "allclose": lambda xp, z, w, x, i: bool(xp.allclose(z, w)),
    "array_equal": lambda xp, z, w, x, i: bool(xp.array_equal(z, z)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_numpys_gives(session: fw.Session, name: str) -> None:
    check(session, CALLS[name])


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.divide, np.equal, np.not_equal])
def test_numpys_ufuncs_of_both_kinds_of_arrays_are_ours(session: fw.Session, ufunc: np.ufunc) -> None:
    host, x = np.array([1 + 2j, 3.0]), np.array([2.0, 4.0])
    for operands in ((host, session.array(x)), (session.array(host), x), (x, session.array(host))):
        actual = ufunc(*operands)
        assert isinstance(actual, fw.Array)
        np.testing.assert_allclose(actual.numpy(), ufunc(*map(np.asarray, operands)))


_FINITE = st.complex_numbers(allow_nan=False, allow_infinity=False)
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
}


@of_a_hundred(100)
@given(st.lists(st.tuples(_FINITE, _FINITE), min_size=1, max_size=8), st.sampled_from([np.complex64, np.complex128]))
def test_operators_agree_with_numpys(pairs: list[tuple[complex, complex]], dtype: Any) -> None:
    with np.errstate(all="ignore"), connect().session as session:
        a, b = np.array(pairs, dtype).T.copy()
        for operator in _OPERATORS.values():
            expected = operator(a, b)
            actual = operator(session.array(a), session.array(b)).numpy()
            is_finite = np.isfinite(expected) & np.isfinite(actual)  # a sum of products may overflow by an order
            assert_near(actual[is_finite], expected[is_finite], ulps=8)


def test_a_quotient_of_large_numbers_does_not_overflow(session: fw.Session) -> None:
    host = np.array([1e300 + 1e300j, 1e-300 + 1e-300j, -1e300j])
    np.testing.assert_allclose((session.array(host) / session.array(host * (1 + 1j))).numpy(), [0.5 - 0.5j] * 3)


def test_a_quotient_by_zero_is_numpys(session: fw.Session) -> None:
    host = np.array([1 + 2j, -1 - 0j, 0, complex(np.nan, 1)])
    with np.errstate(all="ignore"):
        expected = host / np.zeros(4, complex)
    np.testing.assert_array_equal((session.array(host) / session.array(np.zeros(4, complex))).numpy(), expected)


def test_a_python_number_adapts_to_the_array(session: fw.Session) -> None:
    for name in ("float16", "float32", "float64", "int8", "bool", "complex64"):
        x = np.ones(2, name)
        for number in (1j, 2.0, 3, True):
            assert (session.array(x) * number).dtype == (x * number).dtype


def test_zero_to_a_power_is_zero_one_or_nan(session: fw.Session) -> None:
    powers = fw.power(session.array(np.zeros(4, complex)), session.array([2 + 1j, 0, -1, 1j])).numpy()
    np.testing.assert_array_equal(powers, np.array([0, 1, complex(np.nan, np.nan), complex(np.nan, np.nan)]))
