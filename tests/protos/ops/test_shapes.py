"""Shape rules agree with NumPy, and refuse what NumPy refuses."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.errors import ArgumentError, ShapeError
from fusewire_protos.ops import shapes
from fusewire_protos.ops.axis_error import AxisError
from fusewire_protos.ops.shapes import Region, Shape
from tests import strategies

small = strategies.shapes(most_dim=4)
nearly_equal = st.lists(st.sampled_from((1, 1, 2, 3)), max_size=4).map(tuple)


def _of(shape: Shape) -> npt.NDArray[np.bool_]:
    """An array of any shape that takes one byte."""
    return np.broadcast_to(np.False_, shape)


def _agree(ours: Callable[[], Shape], numpys: Callable[[], Any]) -> None:
    """Both give the same shape, or both refuse."""
    try:
        expected = np.shape(numpys())
    except ValueError:
        with pytest.raises(ShapeError):
            ours()
        return
    assert ours() == expected


@pytest.mark.parametrize("dim", [-1, 2**31, 2**32, 2**63, 2**64, 10**30, 1.0, True, None, "3", (1,)])
def test_a_dim_out_of_range_or_of_another_type_is_refused(dim: object) -> None:
    with pytest.raises(ShapeError, match="is not an integer in"):
        shapes.check((2, dim))


@pytest.mark.parametrize("shape", [(2**31 - 1, 2**31 - 1), (2**20, 2**21), (2**31 - 1,) * 8, (2**21, 2**20, 0)])
def test_a_product_of_dims_beyond_the_limit_is_refused(shape: Shape) -> None:
    with pytest.raises(ShapeError, match="counting 0 as 1; the limit is"):
        shapes.check(shape)


def test_rank_is_limited() -> None:
    assert shapes.check((1,) * 16) == (1,) * 16
    with pytest.raises(ShapeError, match="rank 17"):
        shapes.check((1,) * 17)


@given(st.integers(-6, 6), st.integers(0, 4))
def test_axes_count_from_either_end(axis: int, rank: int) -> None:
    if -rank <= axis < rank:
        assert shapes.normalise_axis(axis, rank) == range(rank)[axis]
    else:
        with pytest.raises(AxisError, match=f"axis {axis} is out of bounds for array of dimension {rank}") as refused:
            shapes.normalise_axis(axis, rank)
        assert (refused.value.axis, refused.value.ndim) == (axis, rank)


@given(st.lists(nearly_equal, min_size=1, max_size=4))
def test_broadcasting_is_numpys(operands: list[Shape]) -> None:
    _agree(lambda: shapes.broadcast(*operands), lambda: _of(np.broadcast_shapes(*operands)))


@given(st.lists(small, min_size=1, max_size=3))
def test_broadcasting_with_empty_dims_is_numpys(operands: list[Shape]) -> None:
    _agree(lambda: shapes.broadcast(*operands), lambda: _of(np.broadcast_shapes(*operands)))


@given(nearly_equal, nearly_equal)
def test_broadcast_to_is_numpys(shape: Shape, target: Shape) -> None:
    _agree(lambda: shapes.broadcast_to(shape, target), lambda: np.broadcast_to(_of(shape), target))


@given(small, st.data())
def test_reduction_is_numpys(shape: Shape, data: st.DataObject) -> None:
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, max(len(shape) - 1, 0)), max_size=len(shape)))))
    keepdims = data.draw(st.booleans())
    expected = np.sum(np.zeros(shape), axis=axes, keepdims=keepdims).shape
    assert shapes.reduce(shape, axes, keepdims=keepdims) == expected


@pytest.mark.parametrize("axes", [(1, 0), (0, 0), (2,), (-1,), (0, 1, 2)])
def test_axes_that_do_not_ascend_or_do_not_exist_are_refused(axes: Shape) -> None:
    with pytest.raises(ShapeError, match="must ascend and be in range"):
        shapes.reduce((2, 3), axes, keepdims=False)


@given(small, small)
def test_reshaping_is_numpys(shape: Shape, target: Shape) -> None:
    _agree(lambda: shapes.reshape(shape, target), lambda: np.zeros(shape).reshape(target))


@given(st.permutations(range(4)), st.data())
def test_transposing_is_numpys(permutation: list[int], data: st.DataObject) -> None:
    shape = data.draw(strategies.shapes(least_rank=4))
    assert shapes.transpose(shape, tuple(permutation)) == np.transpose(_of(shape), permutation).shape


@pytest.mark.parametrize("permutation", [(0,), (0, 0), (0, 2), (1, 0, 2), (-1, 0)])
def test_what_is_no_permutation_is_refused(permutation: Shape) -> None:
    with pytest.raises(ShapeError, match="not a permutation"):
        shapes.transpose((2, 3), permutation)


@given(nearly_equal, nearly_equal)
def test_the_shape_of_a_product_is_numpys(a: Shape, b: Shape) -> None:
    _agree(lambda: shapes.product(a, b), lambda: np.matmul(np.zeros(a), np.zeros(b)))


@given(st.integers(-1, 3), st.lists(nearly_equal, min_size=1, max_size=3))
def test_the_shape_of_a_concatenation_is_numpys(axis: int, operands: list[Shape]) -> None:
    if axis < 0:
        with pytest.raises(ShapeError):
            shapes.concatenate(operands, axis)
        return
    _agree(lambda: shapes.concatenate(operands, axis), lambda: np.concatenate([_of(shape) for shape in operands], axis))


@given(strategies.shapes(least_rank=1), small, st.data())
def test_the_shape_of_gathering_is_numpys(shape: Shape, indices: Shape, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    if shape[axis] == 0 and prod(indices) > 0:
        with pytest.raises(ShapeError, match="empty axis"):
            shapes.take(shape, indices, axis)
        return
    expected = np.take(np.zeros(shape), np.zeros(indices, np.int64), axis).shape
    assert shapes.take(shape, indices, axis) == expected


# ---- regions ----


@given(st.integers(0, 9), st.data())
def test_every_python_slice_is_a_region_of_the_same_length(dim: int, data: st.DataObject) -> None:
    chosen = range(dim)[data.draw(st.slices(dim))]
    region = Region((0,), (len(chosen),), (chosen.step,), ())
    assert shapes.region((dim, 2), region) == (len(chosen), 2)
    shapes.check_starts((dim, 2), region, (chosen.start,))


@given(st.integers(0, 6), st.integers(-2, 8), st.sampled_from((-3, -1, 1, 2)), st.integers(-3, 9))
def test_a_region_is_accepted_exactly_if_every_element_exists(dim: int, length: int, step: int, start: int) -> None:
    region = Region((0,), (length,), (step,), ())
    touched = [start + number * step for number in range(length)]
    fits = length >= 0 and all(0 <= position < dim for position in touched)
    try:
        shapes.check_region((dim,), region)
        shapes.check_starts((dim,), region, (start,))
    except (ShapeError, ArgumentError):
        assert not fits
    else:
        assert fits


@given(st.integers(0, 6), st.integers(0, 8), st.sampled_from((-3, -1, 1, 2)))
def test_a_structure_is_accepted_exactly_if_some_start_fits(dim: int, length: int, step: int) -> None:
    region = Region((0,), (length,), (step,), ())
    fits = length == 0 or any(0 <= start + (length - 1) * step < dim for start in range(dim))
    try:
        shapes.check_region((dim,), region)
    except ShapeError:
        assert not fits
    else:
        assert fits


@pytest.mark.parametrize(
    "region",
    [
        Region((0,), (1, 1), (1,), ()),
        Region((0,), (1,), (), ()),
        Region((0,), (1,), (0,), ()),
        Region((2,), (1,), (1,), ()),
        Region((1, 0), (1, 1), (1, 1), ()),
        Region((0,), (2,), (1,), (0,)),
        Region((0,), (1,), (1,), (1,)),
        Region((0,), (2**31 - 1,), (2**31 - 1,), ()),
    ],
)
def test_a_malformed_region_is_refused(region: Region) -> None:
    with pytest.raises(ShapeError):
        shapes.region((4, 5), region)


def test_dropped_axes_vanish_and_may_be_kept() -> None:
    region = Region((0, 2), (1, 2), (1, 2), (0,))
    assert shapes.region((4, 5, 6), region) == (5, 2)
    assert shapes.region_kept((4, 5, 6), region) == (1, 5, 2)
