"""Places in sorted arrays, membership and interpolation, held to NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

SORTED = np.array([-2.0, 0.0, 0.0, 1.5, 3.0, np.inf, np.nan, np.nan])
VALUES = np.array([[-3.0, -2.0, 0.0, 0.5], [1.5, 9.0, np.inf, np.nan]])


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8"])
def test_places_in_a_sorted_vector_are_numpys(session: fw.Session, side: Any, dtype: str) -> None:
    vector = SORTED if dtype.startswith("float") else np.array([0, 2, 2, 7, 100])
    values = VALUES if dtype.startswith("float") else np.array([0, 1, 2, 3, 101])
    vector, values = vector.astype(dtype), values.astype(dtype)
    actual = fw.searchsorted(session.array(vector), values, side=side)
    np.testing.assert_array_equal(actual.numpy(), np.searchsorted(vector, values, side=side), strict=True)
    order = np.random.default_rng(1).permutation(vector.size)
    shuffled = vector[order]
    sorter = np.argsort(shuffled)
    actual = fw.searchsorted(session.array(shuffled), values, side=side, sorter=sorter)
    np.testing.assert_array_equal(actual.numpy(), np.searchsorted(shuffled, values, side=side, sorter=sorter))
    assert fw.searchsorted(session.array(vector), 2).item() == np.searchsorted(vector, 2)


@pytest.mark.parametrize("invert", [False, True])
def test_membership_is_numpys(session: fw.Session, invert: bool) -> None:
    for elements, among in ((VALUES, SORTED), (np.arange(6, dtype=np.int8), [[1, 5], [300, 2]]), (VALUES, [])):
        actual = fw.isin(session.array(elements), among, invert=invert)
        np.testing.assert_array_equal(actual.numpy(), np.isin(elements, among, invert=invert), strict=True)


@pytest.mark.parametrize("options", [{}, {"left": -1.0}, {"left": -1.0, "right": 7.0}])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_values_between_points_are_numpys(session: fw.Session, options: Any, count: int) -> None:
    places, values = np.array([-1.0, 0.5, 1.0, 2.0, 4.0])[:count], np.array([3.0, -1.0, 0.0, 8.0, 2.5])[:count]
    at = np.array([[-2.0, -1.0, -0.3, 0.5, 0.75], [1.0, 3.9, 4.0, 5.0, np.nan]])
    expected = np.interp(at, places, values, **options)
    if count == 1:
        expected[np.isnan(at)] = values[0]  # NumPy gives the only point, whatever is asked
    actual = fw.interp(session.array(at.astype(np.float64)), places, values, **options)
    kept = ~np.isnan(at) if count == 1 else np.ones(at.shape, bool)
    np.testing.assert_allclose(actual.numpy()[kept], expected[kept], rtol=1e-14)
    assert np.interp(session.array(at), places, values, **options).dtype == np.float64


def test_what_does_not_fit_is_refused(session: fw.Session) -> None:
    x = session.array(VALUES)
    with pytest.raises(fw.ShapeError, match="a sorted vector"):
        fw.searchsorted(x, 1.0)
    with pytest.raises(fw.ArgumentError, match="no side 'middle'"):
        fw.searchsorted(x[0], 1.0, side="middle")
    for fp in (x[0, :2], x):
        with pytest.raises(fw.ShapeError, match="two vectors of one length"):
            fw.interp(x, x[0], fp)
