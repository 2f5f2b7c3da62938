"""Layouts against NumPy's own views."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.graph import views
from fusewire_kernels.graph.views import Layout, Move
from fusewire_protos.ops.shapes import Region, Shape
from fusewire_protos.ops.strided import Strided

_MOST_PLACES = 200
_shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def _show(layout: Layout, elements: int, starts: tuple[int, ...] = ()) -> npt.NDArray[np.int64]:
    """What the layout shows of a buffer that holds 0, 1, 2, …"""
    moved = layout.offset + sum(starts[move.start] * move.stride for move in layout.moves)
    where = np.full(layout.shape, moved, np.int64)
    for axis, (dim, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
        steps = np.arange(dim, dtype=np.int64) * stride
        where += steps.reshape([-1 if other == axis else 1 for other in range(len(layout.shape))])
    return np.arange(elements, dtype=np.int64)[where]


def _buffer(shape: Shape) -> npt.NDArray[np.int64]:
    return np.arange(np.prod(shape, dtype=int), dtype=np.int64).reshape(shape)


@given(_shapes, st.randoms(use_true_random=False))
def test_a_transpose_shows_what_numpy_shows(shape: Shape, chance: Random) -> None:
    permutation = tuple(chance.sample(range(len(shape)), len(shape)))
    buffer = _buffer(shape)
    layout = views.transpose(views.dense(shape), permutation)
    np.testing.assert_array_equal(_show(layout, buffer.size), buffer.transpose(permutation))


@given(_shapes, _shapes)
def test_broadcasting_shows_what_numpy_shows(front: Shape, shape: Shape) -> None:
    thin = tuple(1 if position % 2 else dim for position, dim in enumerate(shape))
    buffer = _buffer(thin)
    layout = views.broadcast_to(views.dense(thin), front + shape)
    np.testing.assert_array_equal(_show(layout, buffer.size), np.broadcast_to(buffer, front + shape))


@given(_shapes, st.permutations(range(4)), st.randoms(use_true_random=False))
def test_a_reshape_that_strides_express_shows_what_numpy_shows(
    shape: Shape,
    order: list[int],
    chance: Random,
) -> None:
    permutation = tuple(axis for axis in order if axis < len(shape))
    buffer = _buffer(shape)
    view = buffer.transpose(permutation)
    target = tuple(chance.sample(list(shape), len(shape)))
    layout = views.reshape(views.transpose(views.dense(shape), permutation), target)
    if layout is not None:
        np.testing.assert_array_equal(_show(layout, buffer.size), view.reshape(target))


def test_a_dense_buffer_takes_any_shape() -> None:
    assert views.reshape(views.dense((4, 6)), (2, 2, 3, 2)) == views.dense((2, 2, 3, 2))


def test_a_transpose_cannot_be_flattened_without_a_copy() -> None:
    assert views.reshape(views.transpose(views.dense((2, 3)), (1, 0)), (6,)) is None


def test_what_repeats_can_be_reshaped_as_far_as_strides_allow() -> None:
    repeated = views.broadcast_to(views.dense((3,)), (4, 3))
    assert views.reshape(repeated, (2, 2, 3)) == Layout((2, 2, 3), (0, 0, 1), 0, ())
    assert views.reshape(repeated, (12,)) is None


@given(st.integers(1, 9), st.data())
def test_a_region_shows_what_numpy_slices(dim: int, data: st.DataObject) -> None:
    step = data.draw(st.sampled_from([1, 2, 3, -1, -2]))
    length = data.draw(st.integers(1, (dim - 1) // abs(step) + 1))
    span = (length - 1) * step
    start = data.draw(st.integers(max(0, -span), min(dim, dim - span) - 1))
    layout = views.region(views.dense((dim, 2)), Region((0,), (length,), (step,), ()), first_start=1)
    wanted = _buffer((dim, 2))[[start + position * step for position in range(length)]]
    np.testing.assert_array_equal(_show(layout, dim * 2, (99, start)), wanted)


def test_a_start_that_may_vary_moves_the_view() -> None:
    layout = views.region(views.dense((8, 3)), Region((0, 1), (2, 1), (1, 1), (1,)), first_start=4)
    assert layout == Layout((2,), (3,), 0, (Move(4, 3), Move(5, 1)))


def test_a_slice_of_everything_is_no_slice() -> None:
    whole = views.dense((8, 3))
    assert views.region(whole, Region((0,), (8,), (1,), ()), first_start=0) == whole


def test_a_reversal_of_everything_has_one_start() -> None:
    assert views.region(views.dense((8,)), Region((0,), (8,), (-1,), ()), first_start=0) == Layout((8,), (-1,), 7, ())


def test_an_empty_region_lies_nowhere_in_particular() -> None:
    layout = views.region(views.dense((8, 3)), Region((0, 1), (0, 2), (1, 1), ()), first_start=0)
    assert layout.moves == ()


def test_axes_are_one_walk_if_each_continues_the_next() -> None:
    assert views.is_one_walk((2, 3), (3, 1))
    assert views.is_one_walk((2, 1, 3), (3, 0, 1))
    assert views.is_one_walk((2, 3), (0, 0))
    assert not views.is_one_walk((2, 3), (1, 2))
    assert not views.is_one_walk((2, 3), (0, 1))


def test_a_region_along_an_axis_begins_at_its_position() -> None:
    assert views.region_along_axis(views.dense((4, 6)), 1, 2, (4, 3)) == Layout((4, 3), (6, 1), 2, ())
    assert views.region_along_axis(views.dense((4, 6)), 0, 3, (1, 6)) == Layout((1, 6), (0, 1), 18, ())


@given(st.integers(1, 9), st.integers(1, 3), st.integers(-3, 3), st.data())
def test_a_strided_view_shows_what_its_strides_lead_to(size: int, step: int, stride: int, data: st.DataObject) -> None:
    line = views.region(views.dense((size * step,)), Region((0,), (size,), (step,), ()), first_start=0)
    length = data.draw(st.integers(1, 1 + (size - 1) // max(abs(stride), 1)))
    span = (length - 1) * stride
    start = data.draw(st.integers(max(0, -span), size - 1 - max(0, span)))
    layout = views.strided(line, Strided((length, 1), (stride, 7)), start=1)
    places = (start + stride * np.arange(length)) * step
    np.testing.assert_array_equal(_show(layout, size * step, (0, start)), places[:, None])


def test_a_strided_view_that_spans_a_vector_needs_no_start() -> None:
    assert views.strided(views.dense((6,)), Strided((2, 4), (-2, -1)), start=3) == Layout((2, 4), (-2, -1), 5, ())


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    strides=st.lists(st.integers(0, 9), min_size=4, max_size=4),
    ends=st.sets(st.integers(1, 3)),
    order=st.permutations(range(4)),
)
def test_a_view_of_a_copy_shows_what_the_walks_behind_the_copy_lead_to(
    shape: list[int], strides: list[int], ends: set[int], order: list[int]
) -> None:
    """The view joins neighbouring axes of the copy, and turns what it has joined."""
    source = Layout(tuple(shape), tuple(strides[: len(shape)]), 0, ())
    cuts = [0, *sorted(end for end in ends if end < len(shape)), len(shape)]
    joined = tuple([math.prod(shape[low:high]) for low, high in pairwise(cuts)])
    view = views.transpose(views.dense(joined), tuple([axis for axis in order if axis < len(joined)]))
    walks = views.behind_copy(source, view)
    assert walks is not None
    assert [math.prod(extent for extent, _ in walk) for walk in walks] == [*view.shape]
    seen = views.of_axes(source, [axis for walk in walks for axis in walk])
    copy = _show(source, _MOST_PLACES).reshape(-1)
    np.testing.assert_array_equal(_show(seen, _MOST_PLACES).reshape(view.shape), copy[_show(view, copy.size)])


def test_a_view_that_takes_a_part_of_an_axis_of_a_copy_has_no_walks() -> None:
    source = Layout((4, 6), (1, 1), 0, ())
    assert views.behind_copy(source, Layout((2, 12), (12, 1), 0, ())) == (((2, 2),), ((2, 1), (6, 1)))
    assert views.behind_copy(source, Layout((3, 8), (8, 1), 0, ())) is None
    assert views.behind_copy(source, Layout((3, 6), (6, 1), 6, ())) is None
