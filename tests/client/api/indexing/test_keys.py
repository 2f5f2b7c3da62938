"""Indices, held to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as npst

from fusewire._api.indexing.keys import MOST_INDICES, known_indices, read_index
from fusewire_kernels.ops.move_twins import region_index

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
        places = dict(zip(index.gather.axes, index.gather.indices, strict=True))
        first = index.gather.result_axis
        value = value[tuple(places.get(axis, slice(None)) for axis in range(value.ndim))]
        if len(places) > 1 and max(places) - min(places) >= len(places):
            assert first == 0, "as NumPy has it for indices that something stands between"
        else:
            of_indices = range(len(index.gather.shape))
            value = np.moveaxis(
                value, [min(places) + each for each in of_indices], [first + each for each in of_indices]
            )
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
        ([0, 4], [0, 0], [[1], [3]]),
        ([0, 4], slice(None), [1, 3]),
        (slice(1, 3), None, [0, 0], [1, 3]),
        (0, slice(None), [1, 3], [0, 2]),
        ([True, False, True, False, True], 0),
        (..., [[True, False, True]] * 4),
        (DATA % 7 == 0,),
        ([False] * 5, slice(None), [], 1),
        (slice(None), DATA[0] % 5 == 0),
        (True, 0),
        (False, ..., [1]),
        (np.bool_(True), [0, 2]),
    ],
)
def test_arrays_of_integers_and_masks_gather_where_numpy_does(key: Any) -> None:
    assert picked(key).shape == DATA[key].shape
    np.testing.assert_array_equal(picked(key), DATA[key])


@pytest.mark.parametrize("key", [5, -6, (0, 1), (0, 0, 0, 3), (0, 0, 0, 0, 0), (..., ...)])
def test_what_is_out_of_range_raises_as_in_numpy(key: Any) -> None:
    with pytest.raises(IndexError):
        read_index(key, SHAPE)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (([0, 1], [0, 0, 0]), r"do not broadcast: \(2,\), \(3,\)"),
        ((slice(None), [True, False]), r"a mask of shape \(2,\) does not fit"),
        ((0, [[True], [True]]), r"a mask of shape \(2, 1\) does not fit"),
        (([0], [0], [0], [0], [0]), "too many indices"),
        (([0], [1]), "index 1 is out of range for axis 1"),
    ],
)
def test_indices_that_do_not_fit_raise(key: Any, said: str) -> None:
    with pytest.raises(IndexError, match=said):
        read_index(key, SHAPE)


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


def test_a_boolean_is_a_mask_although_it_equals_a_known_integer() -> None:
    assert read_index(1, SHAPE).starts == (1,)
    assert read_index(True, SHAPE).gather is not None


def test_a_key_with_indices_is_read_each_time() -> None:
    for place in (1, 2):
        gather = read_index((0, ..., [place]), SHAPE).gather
        assert gather is not None
        (places,) = gather.indices
        assert places.tolist() == [place]


def test_no_more_than_so_many_keys_are_kept() -> None:
    for place in range(MOST_INDICES + 10):
        read_index(place, (MOST_INDICES + 10,))
    assert 0 < len(known_indices) <= MOST_INDICES
