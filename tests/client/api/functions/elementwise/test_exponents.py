"""Floats as multiples of powers of two, held to NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ldexp_is_exact_up_to_the_ends_of_the_dtype(session: fw.Session, dtype: str) -> None:
    limits = np.finfo(dtype)
    values = np.array([1, 1.5, -1.25, limits.max, limits.tiny, limits.smallest_subnormal, np.inf, np.nan], dtype)
    exponents = np.concatenate([np.arange(-40, 41), [-3000, -2098, -1074, -1060, -1022, 1023, 1024, 2097, 3000]])
    with np.errstate(all="ignore"):
        expected = np.ldexp(values[:, None], exponents)
    x = session.array(values)[:, None]
    np.testing.assert_array_equal(fw.ldexp(x, exponents).numpy(), expected, strict=True)
    np.testing.assert_array_equal(np.asarray(np.ldexp(x, exponents)), expected, strict=True)


@pytest.mark.parametrize("host", [np.zeros((0, 3)), np.array([[3, 0, -2]]), np.array([1, 2, 3], np.int8)])
def test_ldexp_broadcasts_and_makes_floats_of_integers(session: fw.Session, host: Any) -> None:
    exponents = np.array([3, -2, 0])
    actual = fw.ldexp(session.array(host), exponents)
    np.testing.assert_array_equal(actual.numpy(), np.ldexp(host, exponents), strict=True)


def test_exponents_that_are_no_integers_are_refused(session: fw.Session) -> None:
    with pytest.raises(fw.DtypeError, match="integers as exponents"):
        fw.ldexp(session.array([1.0]), 1.5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_frexp_is_numpys_for_numbers_of_all_sizes(session: fw.Session, dtype: str) -> None:
    limits = np.finfo(dtype)
    ends = [0.0, -0.0, 1, -1, 0.5, limits.max, limits.min, limits.tiny, limits.smallest_subnormal]
    host = np.concatenate(
        [np.array(ends, dtype), np.ldexp(np.array(1.3, dtype), np.arange(limits.minexp - 5, limits.maxexp))]
    )
    for actual, expected in zip(fw.frexp(session.array(host)), np.frexp(host), strict=True):
        np.testing.assert_array_equal(actual.numpy(), expected, strict=True)


def test_frexp_of_what_has_no_exponent_is_itself(session: fw.Session) -> None:
    mantissas, exponents = fw.frexp(session.array([np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(mantissas.numpy(), [np.inf, -np.inf, np.nan])
    assert exponents.tolist() == [0, 0, 0]
