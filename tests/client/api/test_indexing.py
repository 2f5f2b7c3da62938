"""Indices, held to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as npst

from fusewire._api.indexing import read_index
from fusewire._errors import ArgumentError
from fusewire_kernels.ops.reference import region_index

SHAPE = (5, 1, 4, 3)
DATA = np.arange(60).reshape(SHAPE)


def picked(key: Any) -> Any:
    """What our reading of `key` picks from DATA."""
    index = read_index(key, SHAPE)
    value = DATA
    if index.region is not None:
        value = value[region_index(DATA.ndim, tuple(index.region), index.starts)]
    if index.new_shape is not None:
        value = value.reshape(index.new_shape)
    if index.gather is not None:
        axis, indices, comes_first = index.gather
        value = np.take(value, indices, axis=axis)
        if comes_first:
            of_indices = range(np.ndim(indices))
            value = np.moveaxis(value, [axis + each for each in of_indices], list(of_indices))
    return value


@given(npst.basic_indices(SHAPE, allow_newaxis=True, max_dims=8))
def test_basic_indices_pick_what_numpy_picks(key: Any) -> None:
    np.testing.assert_array_equal(picked(key), DATA[key])


@pytest.mark.parametrize(
    "key",
    [
        [0, 2, 2],
        (slice(None), 0, [1, 3]),
        (..., [[0, 1], [2, 0]]),
        (slice(1, 4), None, slice(None), [3, 0]),
        (0, slice(None), [3, 0, 1]),
        (slice(None), 0, slice(1, 3), [[2, 0, 1]]),
        (slice(None), [0, 0], slice(1, 3), 1),
        (slice(None), 0, ..., [1, 3], slice(None)),
        (slice(None), 0, None, [1, 3]),
        (slice(None), 0, [1, 3], 2),
    ],
)
def test_one_array_of_integers_gathers_where_numpy_does(key: Any) -> None:
    assert picked(key).shape == DATA[key].shape
    np.testing.assert_array_equal(picked(key), DATA[key])


@pytest.mark.parametrize("key", [5, -6, (0, 1), (0, 0, 0, 3), (0, 0, 0, 0, 0), (..., ...)])
def test_what_is_out_of_range_raises_as_in_numpy(key: Any) -> None:
    with pytest.raises(IndexError):
        read_index(key, SHAPE)


@pytest.mark.parametrize("key", [True, (slice(None), False), ([0], slice(None), [1])])
def test_masks_and_several_arrays_are_refused(key: Any) -> None:
    with pytest.raises(ArgumentError):
        read_index(key, SHAPE)


def test_several_arrays_are_refused_with_what_does_the_same() -> None:
    rows, columns = [0, 2], [1, 3]
    with pytest.raises(ArgumentError, match=r"x.ravel\(\)\[rows \* x.shape\[1\] \+ columns\]"):
        read_index((rows, columns), (3, 4))
    x = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(x.ravel()[np.array(rows) * x.shape[1] + np.array(columns)], x[rows, columns])


def test_the_start_of_a_window_is_no_part_of_the_op() -> None:
    first, second = read_index(slice(0, 2), SHAPE), read_index(slice(3, 5), SHAPE)
    assert first.region == second.region
    assert (first.starts, second.starts) == ((0,), (3,))
