"""Indices, held to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as npst

from fusewire._api.indexing.keys import known_indices, read_index
from fusewire._errors import ArgumentError
from fusewire._recording.op_rules import MOST_ITEMS
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


@pytest.mark.parametrize("key", [1, (slice(1, 3), None, ..., 0), (...,), slice(None, None, -2)])
def test_a_key_that_comes_again_is_not_read_again(key: Any) -> None:
    assert read_index(key, SHAPE) is read_index(key, SHAPE)


def test_another_shape_gives_a_known_key_another_meaning() -> None:
    assert read_index(-1, (5,)).starts == (4,)
    assert read_index(-1, (3,)).starts == (2,)


def test_a_boolean_is_refused_although_it_equals_a_known_integer() -> None:
    assert read_index(1, SHAPE).starts == (1,)
    with pytest.raises(ArgumentError, match="a boolean is a mask"):
        read_index(True, SHAPE)


def test_a_key_with_indices_is_read_each_time() -> None:
    for place in (1, 2):
        gather = read_index((0, ..., [place]), SHAPE).gather
        assert gather is not None
        assert gather.indices == [place]


def test_no_more_than_so_many_keys_are_kept() -> None:
    for place in range(MOST_ITEMS + 10):
        read_index(place, (MOST_ITEMS + 10,))
    assert 0 < len(known_indices) <= MOST_ITEMS
