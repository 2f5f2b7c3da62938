"""Derivatives by differences, angles without jumps, and quantiles without NaN, held to NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import fusewire as fw
from tests.client.peer import connect

A = np.random.default_rng(0).normal(size=(4, 5, 3))
AT = np.array([0.0, 1.0, 1.5, 4.0])


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert isinstance(actual, tuple)
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            same(ours, theirs)
        return
    assert isinstance(actual, fw.Array)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-10, atol=1e-12, strict=True)


GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "all axes": lambda xp, a: xp.gradient(a),
    "one axis": lambda xp, a: xp.gradient(a, axis=1),
    "a vector": lambda xp, a: xp.gradient(a[:, 0, 0]),
    "a distance": lambda xp, a: xp.gradient(a, 0.5),
    "distances": lambda xp, a: xp.gradient(a, 0.5, 2.0, 3),
    "coordinates": lambda xp, a: xp.gradient(a, AT, axis=0),
    "a mixture": lambda xp, a: xp.gradient(a, AT, 2.0, axis=(0, -1)),
    "accurate ends": lambda xp, a: xp.gradient(a, edge_order=2),
    "accurate ends at coordinates": lambda xp, a: xp.gradient(a, AT, axis=0, edge_order=2),
    "two elements": lambda xp, a: xp.gradient(a[:2], axis=0),
    "integers": lambda xp, a: xp.gradient((a * 8).astype("int64"), axis=1),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_numpy(session: fw.Session, name: str) -> None:
    expected = GRADIENTS[name](np, A)
    same(GRADIENTS[name](fw, session.array(A)), expected)
    same(GRADIENTS[name](np, session.array(A)), expected)


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "too few elements": lambda xp, a: xp.gradient(a[:1], axis=0),
    "too few for accurate ends": lambda xp, a: xp.gradient(a[:2], axis=0, edge_order=2),
    "another order": lambda xp, a: xp.gradient(a, edge_order=3),
    "coordinates of another length": lambda xp, a: xp.gradient(a, AT, axis=1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_gradients_are_refused_where_numpy_refuses_them(session: fw.Session, name: str) -> None:
    for xp, a in ((np, A), (fw, session.array(A))):
        with pytest.raises(ValueError, match=r"."):
            REFUSED[name](xp, a)
    with pytest.raises(fw.ArgumentError, match="as many spacings, or one, not 2"):
        fw.gradient(session.array(A), 1.0, 2.0)


@settings(deadline=None, max_examples=30)
@given(host=npst.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 6)), elements=st.floats(-20, 20)))
def test_angles_without_jumps_are_those_of_numpy(session: fw.Session, host: Any) -> None:
    same(fw.unwrap(session.array(host)), np.unwrap(host))
    same(fw.unwrap(session.array(host), axis=0, period=3.0), np.unwrap(host, axis=0, period=3.0))
    same(fw.unwrap(session.array(host), 4.5), np.unwrap(host, 4.5))


NANS = np.where(np.random.default_rng(1).random((4, 6)) < 0.4, np.nan, np.random.default_rng(2).normal(size=(4, 6)))
NANS[1] = np.nan


def in_numpy(name: str, *arguments: Any, **options: Any) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of lines of NaN alone
        return np.asarray(getattr(np, name)(*arguments, **options))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("q", [0.3, [0.0, 0.5, 1.0]])
def test_quantiles_leave_nan_out_as_numpys_do(session: fw.Session, q: Any, axis: int | None, method: Any) -> None:
    for keepdims in (False, True):
        expected = in_numpy("nanquantile", NANS, q, axis=axis, method=method, keepdims=keepdims)
        same(fw.nanquantile(session.array(NANS), q, axis, method=method, keepdims=keepdims), expected)


@pytest.mark.parametrize("function", ["median", "nanmedian", "percentile", "nanpercentile"])
@pytest.mark.parametrize("axis", [(1, 2), (-1, 0), (0, 1, 2), (1,), ()])
def test_medians_and_percentiles_are_along_several_axes(
    session: fw.Session, function: str, axis: tuple[int, ...]
) -> None:
    windows = np.random.default_rng(3).normal(size=(3, 4, 5))
    q = ([30, 60],) if "percentile" in function else ()
    for keepdims in (False, True):
        expected = in_numpy(function, windows, *q, axis=axis, keepdims=keepdims)
        same(getattr(fw, function)(session.array(windows), *q, axis=axis, keepdims=keepdims), expected)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_medians_and_percentiles_leave_nan_out(session: fw.Session, axis: int | None) -> None:
    x = session.array(NANS)
    same(fw.nanmedian(x, axis), in_numpy("nanmedian", NANS, axis=axis))
    same(fw.nanpercentile(x, 20, axis), in_numpy("nanpercentile", NANS, 20, axis=axis))
    same(fw.nanmedian(session.array([1, 5, 2])), np.asarray(2.0))
    for name in ("nancumsum", "nancumprod"):
        same(getattr(fw, name)(x, axis), getattr(np, name)(NANS, axis=axis))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_places_of_extremes_leave_nan_out(session: fw.Session, name: str, keepdims: bool) -> None:
    host = NANS[[0, 2, 3]]
    for axis in (None, 1):
        expected = getattr(np, name)(host, axis=axis, keepdims=keepdims)
        same(getattr(fw, name)(session.array(host), axis, keepdims=keepdims), np.asarray(expected))
    assert getattr(fw, name)(session.array(NANS[1])).item() == 0


def test_an_unknown_method_is_refused(session: fw.Session) -> None:
    with pytest.raises(ValueError, match="no method 'median'"):
        fw.nanquantile(session.array(NANS), 0.5, method="median")  # type: ignore[arg-type]
