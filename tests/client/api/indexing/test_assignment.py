"""Assignments to what stands between brackets, held to NumPy, on a server in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import fusewire as fw
from fusewire_protos.frames import Fetch
from tests.client.peer import connect

SHAPE = (3, 4, 2)
DATA = np.arange(24.0, dtype=np.float32).reshape(SHAPE)


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def assigned(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def broadcastable(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of values that may be assigned to a selection of `shape`, leading ones among them."""
    ones = st.lists(st.booleans(), min_size=len(shape), max_size=len(shape))
    dims = ones.map(lambda chosen: tuple(1 if one else dim for one, dim in zip(chosen, shape, strict=True)))
    shorter = st.integers(0, len(shape)).map(lambda start: shape[start:])
    # NumPy takes no leading ones for a single element, nor for all that a mask of the array's own shape selects.
    return st.one_of(dims, shorter, st.just((1, 1, *shape) if len(shape) > 1 else shape))


@st.composite
def gathering_keys(draw: st.DrawFn) -> Any:
    """An index with arrays of integers, of ranks that broadcast, and anything basic around them, or with a mask."""
    shape = draw(npst.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5))
    items: list[Any] = []
    axis = 0
    while axis < len(SHAPE):
        kind = draw(st.sampled_from(["array", "array", "slice", "integer", "mask"]))
        if kind == "array":
            own = draw(st.sampled_from([shape, shape, shape[1:]]))
            places = st.integers(-SHAPE[axis], SHAPE[axis] - 1)
            items.append(draw(npst.arrays(draw(st.sampled_from([np.int64, np.int32])), own, elements=places)))
        elif kind == "slice":
            items.append(draw(st.slices(SHAPE[axis])))
        elif kind == "integer":
            items.append(draw(st.integers(0, SHAPE[axis] - 1)))
        else:
            rank = draw(st.integers(1, len(SHAPE) - axis))
            items.append(draw(npst.arrays(np.bool_, SHAPE[axis : axis + rank])))
            axis += rank - 1
        axis += 1
    items = items[: draw(st.integers(1, len(items)))]
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    key = tuple(items) if len(items) > 1 or draw(st.booleans()) else items[0]
    assume(_is_legal(key))
    return key


def _is_legal(key: Any) -> bool:
    try:
        DATA[key]
    except IndexError:  # a mask that selects another number of elements than the arrays beside it
        return False
    return True


def on_server(session: fw.Session, key: Any) -> Any:
    """The same key with arrays on the server."""
    if isinstance(key, tuple):
        return tuple(on_server(session, item) for item in key)
    return session.array(key) if isinstance(key, np.ndarray) else key


def check(session: fw.Session, key: Any, data: st.DataObject) -> None:
    """Values of every shape that fits are assigned as in NumPy."""
    shape = data.draw(broadcastable(DATA[key].shape))
    values = 100 + np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    value = values if data.draw(st.booleans()) else 7.5
    expected = assigned(DATA.copy(), key, value)
    for form in (key, on_server(session, key)):
        result = assigned(session.array(DATA), form, value)
        np.testing.assert_array_equal(result.numpy(), expected, strict=True)
        np.testing.assert_array_equal(result[form].numpy(), expected[key], strict=True)


@settings(deadline=None)
@given(data=st.data(), key=npst.basic_indices(SHAPE, allow_newaxis=True, max_dims=6))
def test_what_basic_indices_pick_is_assigned_to_as_in_numpy(session: fw.Session, key: Any, data: st.DataObject) -> None:
    check(session, key, data)


@settings(deadline=None)
@given(data=st.data(), key=gathering_keys())
def test_what_arrays_and_masks_pick_is_assigned_to_as_in_numpy(
    session: fw.Session, key: Any, data: st.DataObject
) -> None:
    check(session, key, data)


@settings(deadline=None)
@given(data=st.data(), rank=st.integers(0, len(SHAPE)))
def test_what_a_mask_here_picks_is_assigned_to_as_in_numpy(session: fw.Session, rank: int, data: st.DataObject) -> None:
    check(session, data.draw(npst.arrays(np.bool_, SHAPE[:rank])), data)


@pytest.mark.parametrize("value", [7.5, np.float64(7.5), np.arange(2.0), np.ones((1, 4, 1))])
def test_the_rows_under_a_mask_on_the_server_are_assigned_one_value(session: fw.Session, value: Any) -> None:
    mask = np.array([True, False, True])
    result = assigned(session.array(DATA), session.array(mask), value)
    np.testing.assert_array_equal(result.numpy(), assigned(DATA.copy(), mask, value), strict=True)


def test_a_mask_on_the_server_takes_a_value_for_each_element(session: fw.Session) -> None:
    x = session.array(DATA)
    x[x > 3] = -DATA[DATA > 3]
    np.testing.assert_array_equal(x.numpy(), np.where(DATA > 3, -DATA, DATA), strict=True)
    with pytest.raises(fw.ShapeError):
        x[x > 3] = np.ones(5)


def test_elements_under_a_mask_are_added_to_in_place(session: fw.Session) -> None:
    x = session.array(DATA)
    x[x > 3] += 10
    np.testing.assert_array_equal(x.numpy(), np.where(DATA > 3, DATA + 10, DATA), strict=True)


def test_one_value_under_a_mask_on_the_server_costs_no_round_trip() -> None:
    peer = connect()
    with peer.session as session:
        x = session.array(DATA)
        x[x > 3] = 1
        x.numpy()
        assert sum(isinstance(entry, Fetch) for entry in peer.server.entries) == 1


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("place", [0, 2, -1])
def test_an_index_on_the_server_is_assigned_to_as_it_is_read(session: fw.Session, place: int, dtype: str) -> None:
    if place < 0 and dtype == "uint8":
        place = 2
    k = session.array(place, dtype=dtype)
    keys: list[Any] = [(k, place), ((k, 1), (place, 1)), ((..., 1, None, k % 2), (..., 1, None, place % 2))]
    for key, in_numpy in keys:
        x = session.array(DATA)
        result = assigned(x, key, 7)
        np.testing.assert_array_equal(result.numpy(), assigned(DATA.copy(), in_numpy, 7), strict=True)
        np.testing.assert_array_equal(result[key].numpy(), np.full(DATA[in_numpy].shape, 7, np.float32), strict=True)


def test_the_greatest_element_is_set_and_added_to_in_place(session: fw.Session) -> None:
    x = session.array([3, 9, 5])
    x[x.argmax()] = 0
    x[x.argmax()] += 10
    assert x.tolist() == [3, 0, 15]


def test_an_index_on_the_server_out_of_range_assigns_to_the_first_or_the_last(session: fw.Session) -> None:
    x = session.array([1, 2, 3])
    for place in (-7, 7):
        x[session.array(place)] = place
    assert x.tolist() == [-7, 2, 7]


def test_several_indices_on_the_server_out_of_range_assign_to_the_first_or_the_last(session: fw.Session) -> None:
    x = session.array(np.zeros((3, 3)))
    x[session.array([-9, 9, 1]), session.array([0, 9, -1])] = [1, 2, 3]
    assert x.tolist() == [[1, 0, 0], [0, 0, 3], [0, 0, 2]]


def test_the_last_of_several_values_for_an_element_stays(session: fw.Session) -> None:
    places = np.array([4, 0, 4, 4, 2, 0])
    for form in (places, session.array(places)):
        x = session.array(np.zeros(6))
        x[form] = np.arange(1.0, 7)
        assert x.tolist() == [6, 0, 5, 0, 4, 0]


def test_a_value_assigned_through_indices_keeps_the_dtype(session: fw.Session) -> None:
    x = session.array([2**60 + 1, 5, -3])
    x[[1, 2]] = [1.75, -300.5]
    assert x.dtype == np.int64
    assert x.tolist() == [2**60 + 1, 1, -300]


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ([0, 1], np.ones((3, 4, 2)), fw.ShapeError),
        (np.array([True, False, True]), np.ones((3, 4, 2)), fw.ShapeError),
        ((slice(None), None, 0), np.ones((3, 2, 2)), fw.ShapeError),
        ([], np.ones(3), fw.ShapeError),
        ([0.5], 1, IndexError),
        (1.0, 1, IndexError),
        ([3], 1, IndexError),
        (np.array([-4, 0]), 1, IndexError),
        ((0, [2**63]), 1, IndexError),
        ((..., np.array([0, 2], np.uint8)), 1, IndexError),
        (np.array([True, False]), 1, IndexError),
        ([[True] * 4] * 4, 1, IndexError),
        ((0, [True, False, True]), 1, IndexError),
        (([0, 1], [0, 1, 2]), 1, IndexError),
        (([0, 1], [0, 1]), np.ones((3, 2)), fw.ShapeError),
        ((True, [0]), 1, fw.ArgumentError),
    ],
)
def test_what_cannot_be_assigned_leaves_the_array_as_it_was(
    session: fw.Session, key: Any, value: Any, error: type[Exception]
) -> None:
    x = session.array(DATA)
    with pytest.raises(error):
        x[key] = value
    np.testing.assert_array_equal(x.numpy(), DATA, strict=True)


def test_an_axis_of_length_0_has_no_place(session: fw.Session) -> None:
    x = session.array(np.zeros((0, 2)))
    with pytest.raises(fw.ShapeError):
        x[session.array(0)] = 1
    with pytest.raises(IndexError, match="index 0 is out of range for axis 0 of length 0"):
        x[[0]] = 1
    x[[]] = 1
    assert x.shape == (0, 2)
