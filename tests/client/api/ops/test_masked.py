"""Reductions of the elements that a mask chooses, and of a number beside them, held to NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

FUSEWIRE: Any = fw
RANDOM = np.random.default_rng(3)
MASK = RANDOM.random((4, 5)) < 0.5
MASK[:, 0] = True  # so that no row is empty
HOST = {name: (RANDOM.normal(size=(4, 5)) * 3).astype(name) for name in ("float16", "float32", "float64", "int8")}
HOST["bool"] = HOST["int8"] > 0
NANS = np.where(RANDOM.random((4, 5)) < 0.3, np.nan, HOST["float64"])
WITH_INITIAL = ("sum", "prod", "max", "min", "nansum", "nanprod", "nanmax", "nanmin")
WITHOUT_INITIAL = ("mean", "var", "std", "any", "all", "nanmean", "nanvar", "nanstd")


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(actual: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert (actual.shape, actual.dtype.name) == (expected.shape, expected.dtype.name)
    limits = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12}
    np.testing.assert_allclose(actual.numpy(), expected, rtol=limits.get(expected.dtype.name, 0))


@pytest.mark.parametrize("axis", [None, 1, (0, 1)])
@pytest.mark.parametrize("dtype", [*HOST])
@pytest.mark.parametrize("name", WITH_INITIAL)
def test_a_mask_and_an_initial_value_are_numpys(session: fw.Session, name: str, dtype: str, axis: Any) -> None:
    if dtype == "bool" and name in ("max", "min", "nanmax", "nanmin"):
        pytest.skip("NumPy's initial value of booleans is an integer")
    host, of_numpy = HOST[dtype], getattr(np, name)
    x, ours = session.array(host), getattr(fw, name)
    same(ours(x, axis, where=MASK, initial=3), of_numpy(host, axis=axis, where=MASK, initial=3))
    same(ours(x, axis, initial=2, keepdims=True), of_numpy(host, axis=axis, initial=2, keepdims=True))
    same(of_numpy(x, axis=axis, where=MASK, initial=3), of_numpy(host, axis=axis, where=MASK, initial=3))


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("dtype", [*HOST])
@pytest.mark.parametrize("name", WITHOUT_INITIAL)
def test_a_mask_is_numpys(session: fw.Session, name: str, dtype: str, axis: Any) -> None:
    host, of_numpy = HOST[dtype], getattr(np, name)
    if dtype == "bool" and name in ("nanvar", "nanstd"):
        pytest.skip("NumPy subtracts no booleans")
    same(getattr(fw, name)(session.array(host), axis, where=MASK), of_numpy(host, axis=axis, where=MASK))
    same(of_numpy(session.array(host), axis=axis, where=session.array(MASK)), of_numpy(host, axis=axis, where=MASK))


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd"])
def test_nan_is_left_out_beside_a_mask(session: fw.Session, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of lines without numbers
        expected = getattr(np, name)(NANS, axis=0, where=MASK)
    same(getattr(fw, name)(session.array(NANS), 0, where=MASK), expected)


def test_methods_take_a_mask_too(session: fw.Session) -> None:
    x, host = session.array(HOST["float64"]), HOST["float64"]
    for name in ("sum", "prod", "mean", "var", "std", "any", "all"):
        same(getattr(x, name)(1, where=MASK), getattr(host, name)(1, where=MASK))
    for name in ("max", "min"):
        same(getattr(x, name)(1, where=MASK, initial=0), getattr(host, name)(1, where=MASK, initial=0))


def test_a_mask_is_broadcast(session: fw.Session) -> None:
    row = np.array([True, False, True, False, True])
    same(fw.sum(session.array(HOST["int8"]), 0, where=row), HOST["int8"].sum(0, where=row))
    with pytest.raises(ValueError, match="broadcast"):
        fw.sum(session.array(HOST["int8"]), where=np.ones((2, 4, 5), bool))


def test_nothing_has_the_initial_value(session: fw.Session) -> None:
    nothing = np.zeros((0, 3), np.int32)
    for name in ("max", "min", "sum", "prod"):
        same(getattr(fw, name)(session.array(nothing), 0, initial=5), getattr(np, name)(nothing, axis=0, initial=5))


def test_ufuncs_reduce_with_a_mask(session: fw.Session) -> None:
    x, host = session.array(HOST["float64"]), HOST["float64"]
    same(np.add.reduce(x, where=MASK, initial=1.0), np.add.reduce(host, where=MASK, initial=1.0))
    same(FUSEWIRE.maximum.reduce(x, axis=1, where=MASK, initial=0.0), np.maximum.reduce(host, 1, where=MASK, initial=0))


def test_an_extreme_of_a_mask_needs_an_initial_value(session: fw.Session) -> None:
    with pytest.raises(ValueError, match="max has no identity, so with where= it needs initial= too"):
        fw.max(session.array(HOST["float64"]), where=MASK)
