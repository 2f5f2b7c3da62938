"""Elementary functions of complex numbers: near NumPy's everywhere, and the standard's values at infinities and NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.api.complex.near import assert_near

NAMES = (
    *("abs", "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sign", "square", "reciprocal"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
)
_PARTS = (-np.inf, -1e300, -2.5, -1.0, -0.5, -1e-300, -0.0, 0.0, 1e-300, 0.5, 1.0, 2.5, 1e300, np.inf, np.nan)
SPECIAL = np.array([complex(x, y) for x in _PARTS for y in _PARTS])
# Where NumPy has not the value of the standard, or loses digits.
_NOT_NUMPYS = {
    "expm1": lambda z: (np.isinf(z.real) & ~np.isfinite(z.imag)) | (~(abs(z.real) < 1e300) & (z.imag == 0)) | (z == 0),
    "log1p": lambda z: abs(z) < 1e-200,
    "square": lambda z: abs(z) > 1e200,
}
# The sign of these zeros and infinities beside NaN is not defined.
_ANY_SIGN = ("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan")


@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_those_of_the_standard(session: fw.Session, name: str) -> None:
    given = SPECIAL[~_NOT_NUMPYS[name](SPECIAL)] if name in _NOT_NUMPYS else SPECIAL
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(given)
    actual = getattr(fw, name)(session.array(given)).numpy()
    assert actual.dtype == expected.dtype
    for ours, theirs in zip(_parts(actual), _parts(expected), strict=True):
        is_special = ~np.isfinite(theirs) | (theirs == 0)
        is_tiny = (theirs == 0) & (abs(ours) < 1e-290)  # NumPy's may have vanished
        compared = is_special & ~is_tiny
        is_free = ~np.isfinite(given) if name in _ANY_SIGN else np.zeros(given.shape, bool)
        sizes = [np.where(is_free, abs(each), each) for each in (ours, theirs)]
        np.testing.assert_array_equal(sizes[0][compared], sizes[1][compared])
        signed = compared & ~np.isnan(theirs) & ~is_free
        np.testing.assert_array_equal(np.signbit(ours[signed]), np.signbit(theirs[signed]))
    is_usual = np.isfinite(expected) & np.isfinite(actual)
    assert_near(actual[is_usual], expected[is_usual], ulps=16)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_near_those_of_more_digits(session: fw.Session, name: str, dtype: Any) -> None:
    random = np.random.default_rng(len(name))
    sizes = 10 ** random.uniform(-3, 3, 400)
    given = (sizes * np.exp(2j * np.pi * random.random(400))).astype(dtype)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(given.astype(np.clongdouble))
        expected = exact.astype(np.float64 if name == "abs" else np.complex128)
        expected = expected.astype(getattr(np, name)(given).dtype)
        actual = getattr(fw, name)(session.array(given)).numpy()
    is_usual = np.isfinite(expected) & (abs(expected) > np.finfo(expected.dtype).tiny)
    if name == "log1p":  # whose digits NumPy loses near 0
        is_usual &= abs(given) > 0.1
    assert_near(actual[is_usual], expected[is_usual], ulps=8)
    assert np.isfinite(actual[is_usual]).all()


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "acosh", "atanh"])
def test_the_sign_of_a_zero_tells_the_side_of_a_branch_cut(session: fw.Session, name: str) -> None:
    above = np.array([complex(-2, 0.0), complex(2, 0.0)])
    results = [getattr(fw, name)(session.array(each)).numpy() for each in (above, above.conj())]
    np.testing.assert_allclose(results[0], results[1].conj(), rtol=1e-14)
    np.testing.assert_allclose(results[0], getattr(np, name)(above), rtol=1e-14)


def test_log1p_keeps_the_digits_of_small_numbers(session: fw.Session) -> None:
    small = np.array([1e-20 + 1e-22j, -1e-300j, 1e-9 - 1e-9j])
    np.testing.assert_allclose(fw.log1p(session.array(small)).numpy(), small - small * small / 2, rtol=1e-14)


def test_expm1_has_the_limits_that_numpy_lacks(session: fw.Session) -> None:
    for y in (np.inf, -np.inf, np.nan):
        z = fw.expm1(session.array([complex(-np.inf, y), complex(np.inf, y)])).numpy()
        assert (z[0], z[1].real) == (-1, np.inf)
        assert np.isnan(z[1].imag)


def test_zeros_have_the_signs_of_the_standard(session: fw.Session) -> None:
    zeros = fw.expm1(session.array([complex(-0.0, 0.0), complex(-0.0, -0.0)])).numpy()
    assert [np.signbit(each).tolist() for each in (zeros.real, zeros.imag)] == [[False, False], [False, True]]
    flat = fw.tanh(session.array([complex(np.inf, 2.0), complex(-np.inf, -2.0)])).numpy()
    assert flat.real.tolist() == [1, -1]
    assert np.signbit(flat.imag).tolist() == [False, True]


def test_numpys_functions_of_arrays_of_ours_are_these(session: fw.Session) -> None:
    z = session.array([1 + 1j])
    for name in ("exp", "arcsin", "tanh", "sqrt", "absolute"):
        actual = getattr(np, name)(z)
        assert isinstance(actual, fw.Array)
        np.testing.assert_allclose(actual.numpy(), getattr(np, name)(z.numpy()), rtol=1e-14)


def _parts(value: Any) -> tuple[Any, ...]:
    return (value.real, value.imag) if np.iscomplexobj(value) else (value,)
