"""Elementwise functions that consist of several ops, held to NumPy over the whole range of each float dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.api.functions.values import (
    FLOATS,
    OF_ONE,
    OF_TWO,
    allowed,
    cancels,
    distance_ulps,
    expected_of_two,
    floats,
    in_numpy,
    numpy_dtype,
    wider,
)
from tests.client.peer import connect


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def check(actual: fw.Array, expected: Any, limit: int) -> None:
    value = actual.numpy()
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    assert distance_ulps(value, expected).max(initial=0) <= limit
    is_number = ~np.isnan(expected)
    assert (np.signbit(value) == np.signbit(expected))[is_number].all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OF_ONE)
def test_a_function_of_one_array_is_numpys(session: fw.Session, name: str, dtype: str) -> None:
    host = floats(dtype)
    check(getattr(fw, name)(session.array(host)), in_numpy(name, host), allowed(dtype, OF_ONE[name]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OF_TWO)
def test_a_function_of_two_arrays_is_numpys(session: fw.Session, name: str, dtype: str) -> None:
    a, b = floats(dtype), floats(dtype, seed=1)
    b = np.where(np.arange(a.size) % 7 == 0, a, b)  # equal ones too
    actual = getattr(fw, name)(session.array(a), session.array(b))
    expected = expected_of_two(name, a, b)
    if name == "logaddexp":
        zero = cancels(expected, a, b)
        expected, actual = np.where(zero, 0, expected).astype(a.dtype), fw.where(zero, 0.0, actual)
    if name in ("fmin", "fmax"):
        assert actual.dtype == dtype
        np.testing.assert_array_equal(wider(actual.numpy()), wider(expected))  # NumPy's zeros have either sign
    else:
        check(actual, expected, allowed(dtype, OF_TWO[name]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_signs_are_numpys(session: fw.Session, dtype: str) -> None:
    host = floats(dtype)
    np.testing.assert_array_equal(fw.signbit(session.array(host)).numpy(), np.signbit(host), strict=True)


@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO, "signbit"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64"])
def test_integers_become_the_floats_of_numpy(session: fw.Session, name: str, dtype: str) -> None:
    host = np.array([0, 1], dtype)
    others = [np.array([1, 1], dtype)] if name in OF_TWO else []
    theirs = getattr(np, name)
    if name in ("deg2rad", "rad2deg", "fmod", "fmin", "fmax") and dtype == "bool":
        return  # NumPy has no such loop, or another dtype
    with np.errstate(all="ignore"):
        expected = theirs(host, *others)
    actual = getattr(fw, name)(session.array(host), *others)
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
def test_the_remainder_of_integers_is_exact(session: fw.Session, dtype: str) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.min, limits.max, 7, limits.max, 0, 7, 1], dtype)
    b = np.array([3, 3, 3, 1, 5, 0, limits.max], dtype)
    b = np.concatenate([b, -b]) if limits.min < 0 else np.concatenate([b, b])
    a = np.concatenate([a, a])
    with np.errstate(all="ignore"):
        expected = np.fmod(a, b)
    np.testing.assert_array_equal(fw.fmod(session.array(a), b).numpy(), expected, strict=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_scalar_beside_an_array_adapts_and_is_no_upload(session: fw.Session, dtype: str) -> None:
    x = session.array(np.array([3.0, -4.0], numpy_dtype(dtype)))
    for function in (fw.hypot, fw.fmax, fw.copysign, fw.logaddexp, fw.fmod, fw.nextafter):
        for result in (function(x, 4.0), function(4, x)):
            assert result.dtype.name == dtype
    assert fw.hypot(x, 4.0)[0].item() == 5
    assert fw.hypot(x, np.float64(4)).dtype is fw.float64
    assert fw.hypot(3, 4).item() == 5


@pytest.mark.parametrize("name", ["conj", "real", "imag", "positive"])
def test_the_parts_of_real_numbers_are_numpys(session: fw.Session, name: str) -> None:
    for host in (np.array([1.5, -0.0], np.float16), np.array([1, -2], np.int32)):
        np.testing.assert_array_equal(getattr(fw, name)(session.array(host)).numpy(), getattr(np, name)(host))
    with pytest.raises(fw.DtypeError):
        getattr(fw, name)(session.array([True]))


def test_the_reciprocal_is_of_floats(session: fw.Session) -> None:
    host = floats("float32")
    with np.errstate(all="ignore"):
        expected = np.reciprocal(host)
    np.testing.assert_array_equal(fw.reciprocal(session.array(host)).numpy(), expected, strict=True)
    with pytest.raises(fw.DtypeError, match="write 1 / x"):
        fw.reciprocal(session.array([2]))


def test_composites_are_recorded_in_loops_and_functions(session: fw.Session) -> None:
    def body(i: Any, x: Any) -> Any:
        grown = fw.sinh(fw.hypot(x, 4.0) / 4) + fw.nan_to_num(fw.tril(x)) + fw.pad(x[1:, 1:], ((1, 0), (1, 0)), "edge")
        return grown / (1 + fw.fmax(fw.nanmax(grown), i))

    x = session.array(np.linspace(0, 1, 9).reshape(3, 3))
    expected = x
    for i in range(3):
        expected = body(i, expected)
    np.testing.assert_allclose(fw.fori_loop(3, body, x).numpy(), expected.numpy(), rtol=1e-12)
    recorded = fw.function(lambda given: body(0, given))
    np.testing.assert_allclose(recorded(x).numpy(), body(0, x).numpy(), rtol=1e-12)


SIMPLE: dict[str, Callable[[Any, Any], Any]] = {
    "divmod": lambda xp, a: xp.divmod(a, 0.75),
    "modf": lambda xp, a: xp.modf(a),
    "rint": lambda xp, a: xp.rint(a),
    "fix": lambda xp, a: xp.fix(a),
    "fabs": lambda xp, a: xp.fabs(a),
    "float_power": lambda xp, a: xp.float_power(a, -2),
    "heaviside": lambda xp, a: xp.heaviside(a, 0.5),
    "isposinf": lambda xp, a: xp.isposinf(a),
    "isneginf": lambda xp, a: xp.isneginf(a),
    "logaddexp2": lambda xp, a: xp.logaddexp2(a, a[::-1]),
    "sinc": lambda xp, a: xp.sinc(a),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", SIMPLE)
@np.errstate(all="ignore")
def test_a_function_that_is_numpys_in_a_few_ops(session: fw.Session, name: str, dtype: str) -> None:
    host = np.array([0.0, -0.0, 1.0, -1.0, 0.3, -2.7, 5.5, 100.25, np.inf, -np.inf, np.nan, 1e-7], dtype)
    if name == "sinc":
        host = np.abs(host[np.isfinite(host)])
    actual, expected = SIMPLE[name](fw, session.array(host)), SIMPLE[name](np, host)
    eps = 4 * float(np.finfo(dtype).eps)
    both = zip(actual, expected, strict=True) if isinstance(expected, tuple) else [(actual, expected)]
    for ours, theirs in both:
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=eps, atol=eps if name == "sinc" else 0, strict=True)
        is_number = ~np.isnan(theirs)
        assert (np.signbit(ours.numpy()) == np.signbit(theirs))[is_number].all() or name in ("divmod", "sinc")


def test_whole_numbers_have_float_parts(session: fw.Session) -> None:
    for name in ("rint", "modf", "fabs"):
        ours, theirs = getattr(fw, name)(session.array([1, -2])), getattr(np, name)(np.array([1, -2]))
        np.testing.assert_array_equal(np.asarray(ours[0]), theirs[0])
    assert fw.float_power(session.array([2]), -1).tolist() == [0.5]
