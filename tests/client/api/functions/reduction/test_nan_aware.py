"""Functions that leave NaN out, and those that tell what is close, held to NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

NAN, INF = np.nan, np.inf
HOSTS = {
    "some": np.array([[1.5, NAN, -2.0, 4.0], [NAN, NAN, NAN, NAN], [0.0, -0.5, 3.0, 1.0]]),
    "infinite": np.array([[INF, NAN, 1.0], [-INF, INF, NAN]]),
    "cube": np.where(np.arange(24) % 5 == 0, NAN, np.linspace(-2, 3, 24)).reshape(2, 3, 4),
}


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd"])
def test_a_reduction_leaves_nan_out_as_numpys_does(
    session: fw.Session, name: str, dtype: str, host: str, axis: Any, keepdims: bool
) -> None:
    values = HOSTS[host].astype(dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of slices of NaN alone
        expected = np.asarray(getattr(np, name)(values, axis=axis, keepdims=keepdims))
    actual = getattr(fw, name)(session.array(values), axis=axis, keepdims=keepdims)
    assert (actual.dtype.name, actual.shape) == (expected.dtype.name, expected.shape)
    eps = 4 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=eps, atol=eps)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd"])
def test_integers_have_no_nan(session: fw.Session, name: str) -> None:
    host = np.array([[1, 2], [3, 5]], np.int16)
    expected = getattr(np, name)(host, axis=0)
    np.testing.assert_allclose(getattr(fw, name)(session.array(host), axis=0).numpy(), expected, strict=True)


@pytest.mark.parametrize("ddof", [0, 1, 3])
def test_too_few_elements_have_no_variance(session: fw.Session, ddof: int) -> None:
    host = HOSTS["some"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = np.nanvar(host, axis=1, ddof=ddof)
    np.testing.assert_allclose(fw.nanvar(session.array(host), axis=1, ddof=ddof).numpy(), expected)
    np.testing.assert_allclose(fw.nanstd(session.array(host), axis=1, correction=ddof).numpy(), expected**0.5)


@pytest.mark.parametrize("options", [{}, {"nan": 3.0}, {"posinf": 1.0}, {"nan": -1.0, "posinf": 5.0, "neginf": -7.0}])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_numbers_come_in_place_of_nan_and_infinities(session: fw.Session, dtype: str, options: Any) -> None:
    host = np.array([1, 2], dtype) if dtype == "int8" else HOSTS["infinite"].astype(dtype)
    expected = np.nan_to_num(host, **options)
    np.testing.assert_array_equal(fw.nan_to_num(session.array(host), **options).numpy(), expected, strict=True)
    with pytest.raises(fw.ArgumentError, match=r"x\[\.\.\.\] = nan_to_num"):
        fw.nan_to_num(host, copy=False)


CLOSE = [
    ([1.0, 1.0001, NAN, INF, -INF, INF, 0.0, 1e-9], [1.0, 1.0, NAN, INF, INF, 1.0, 0.0, 0.0]),
    ([[1.0], [2.0]], [1.0, 2.000001]),
    ([1, 2, 2**40], [1, 2.0000001, 2**40 + 1]),
    ([True, False], [1, 1]),
    ([], []),
]


@pytest.mark.parametrize("options", [{}, {"rtol": 1e-3}, {"atol": 10.0}, {"equal_nan": True}, {"rtol": 0, "atol": 0}])
@pytest.mark.parametrize(("a", "b"), CLOSE)
def test_what_is_close_is_close_in_numpy(session: fw.Session, a: Any, b: Any, options: Any) -> None:
    x = session.array(a)
    np.testing.assert_array_equal(fw.isclose(x, b, **options).numpy(), np.isclose(a, b, **options), strict=True)
    answer = fw.allclose(x, b, **options)
    assert (answer.dtype, answer.shape) == (fw.bool, ())
    assert bool(answer) == np.allclose(a, b, **options)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "bool"])
def test_closeness_is_of_one_dtype(session: fw.Session, dtype: str) -> None:
    host = np.array([0, 1, 1], dtype)
    np.testing.assert_array_equal(fw.isclose(session.array(host), 1.0).numpy(), [False, True, True], strict=True)


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize(("a", "b"), [*CLOSE, ([1.0, NAN], [1.0, NAN]), ([1, 2], [1, 2]), ([[1, 1]], [1, 1])])
def test_what_is_equal_is_equal_in_numpy(session: fw.Session, a: Any, b: Any, equal_nan: bool) -> None:
    answer = fw.array_equal(session.array(a), b, equal_nan=equal_nan)
    assert (answer.dtype, answer.shape) == (fw.bool, ())
    assert bool(answer) == np.array_equal(a, b, equal_nan=equal_nan)
