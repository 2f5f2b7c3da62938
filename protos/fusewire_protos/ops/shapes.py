"""Shapes, and the rules that give the shape of each op's result. Sizes are Python integers: these do not overflow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from reprlib import repr as shortened
from typing import NamedTuple

from fusewire_protos.errors import ArgumentError, ShapeError
from fusewire_protos.ops.axis_error import AxisError
from fusewire_protos.ops.dtypes import DType

Shape = tuple[int, ...]

MAX_RANK = 16
MAX_DIM = 2**31 - 1
MAX_ELEMENTS = 2**40


class Spec(NamedTuple):
    """The dtype and the shape of an array."""

    dtype: DType
    shape: Shape

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize_bytes


def check(shape: Sequence[object]) -> Shape:
    """`shape` as a tuple. Raises ShapeError unless the rank, the dims and the product of dims above 0 are in range."""
    if len(shape) > MAX_RANK:
        raise ShapeError(f"rank {len(shape)} exceeds the limit of {MAX_RANK}")
    for dim in shape:
        if type(dim) is not int or not 0 <= dim <= MAX_DIM:
            raise ShapeError(
                f"dim {shortened(dim)} of shape {shortened(tuple(shape))} is not an integer in 0..{MAX_DIM}"
            )
    dims: Shape = tuple(shape)  # type: ignore[arg-type]  # each dim was checked above
    # Strides of an empty array are products of its dims, too, so its dims are bounded as if 0 were 1.
    elements = prod(filter(None, dims))
    if elements > MAX_ELEMENTS:
        raise ShapeError(f"shape {dims} has {elements} elements, counting 0 as 1; the limit is {MAX_ELEMENTS}")
    return dims


def normalise_axis(axis: int, rank: int, parameter: str | None = None) -> int:
    """`axis` counted from the front. Raises AxisError if it is outside −rank..rank−1."""
    if not -rank <= axis < rank:
        raise AxisError(axis, rank, parameter)
    return axis % rank


def broadcast(*shapes: Shape) -> Shape:
    """The shape that all `shapes` broadcast to, as in NumPy. Raises ShapeError if they do not broadcast."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(_broadcast_dim(dims, shapes) for dims in zip(*padded, strict=True))


def _broadcast_dim(dims: tuple[int, ...], shapes: tuple[Shape, ...]) -> int:
    distinct = {dim for dim in dims if dim != 1}
    if len(distinct) > 1:
        raise ShapeError(f"shapes {' and '.join(map(str, shapes))} cannot be broadcast together")
    return distinct.pop() if distinct else 1


def broadcast_to(shape: Shape, target: Shape) -> Shape:
    """`target`, if `shape` broadcasts to it. Raises ShapeError."""
    if broadcast(shape, target) != target:
        raise ShapeError(f"shape {shape} does not broadcast to {target}")
    return target


def reduce(shape: Shape, axes: Shape, *, keepdims: bool) -> Shape:
    """The shape that remains after a reduction over `axes`, which are ascending and counted from the front."""
    _check_axes(axes, len(shape))
    if keepdims:
        return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


def reshape(shape: Shape, target: Shape) -> Shape:
    """`target`, if it holds as many elements as `shape`. Raises ShapeError."""
    if prod(shape) != prod(target):
        raise ShapeError(f"cannot reshape {shape} ({prod(shape)} elements) to {target} ({prod(target)})")
    return target


def transpose(shape: Shape, permutation: Shape) -> Shape:
    """`shape` with its axes in the order of `permutation`. Raises ShapeError."""
    if sorted(permutation) != list(range(len(shape))):
        raise ShapeError(f"{permutation} is not a permutation of the {len(shape)} axes of {shape}")
    return tuple(shape[axis] for axis in permutation)


def product(a: Shape, b: Shape) -> Shape:
    """The shape of `a @ b`, with NumPy's rules for vectors and batches. Raises ShapeError."""
    if not a or not b:
        raise ShapeError("matmul takes arrays of rank 1 or more, not a scalar")
    rows = a[-2:-1]
    columns = b[-1:] if len(b) > 1 else ()
    inner_b = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner_b:
        raise ShapeError(f"matmul of {a} and {b}: {a[-1]} columns do not fit {inner_b} rows")
    return broadcast(a[:-2], b[:-2]) + rows + columns


def concatenate(operands: Sequence[Shape], axis: int) -> Shape:
    """The shape of `operands` joined along `axis`. Raises ShapeError."""
    first = operands[0]
    if not 0 <= axis < len(first):
        raise ShapeError(f"concat axis {axis} is out of range for rank {len(first)}")
    for other in operands[1:]:
        if len(other) != len(first) or other[:axis] + other[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ShapeError(f"concat along axis {axis}: {other} does not fit {first}")
    return first[:axis] + (sum(operand[axis] for operand in operands),) + first[axis + 1 :]


def take(shape: Shape, indices: Shape, axis: int) -> Shape:
    """The shape of the elements that an array of shape `indices` selects along `axis`. Raises ShapeError."""
    if not 0 <= axis < len(shape):
        raise ShapeError(f"take axis {axis} is out of range for rank {len(shape)}")
    if shape[axis] == 0 and prod(indices) > 0:
        raise ShapeError(f"take from an empty axis {axis} of {shape}")
    return shape[:axis] + indices + shape[axis + 1 :]


class Region(NamedTuple):
    """A slice along several axes. For each of `axes` it has a number of elements, in `lengths`, and a step, in `steps`.

    The start of the slice along an axis is the index of its first element there. Starts are bindings and no part of the
    structure. `dropped` are sliced axes of length 1 that the result does not have: `x[3]` has one axis less than `x`.
    """

    axes: Shape
    lengths: Shape
    steps: Shape
    dropped: Shape


def check_region(shape: Shape, region: Region) -> None:
    """Raises ShapeError unless `region` lies inside `shape` for some starts."""
    axes, lengths, steps, dropped = region
    _check_axes(axes, len(shape))
    if not len(axes) == len(lengths) == len(steps):
        raise ShapeError(f"slice of {len(axes)} axes has {len(lengths)} lengths and {len(steps)} steps")
    for axis, length, step in zip(axes, lengths, steps, strict=True):
        if step == 0 or length < 0 or abs(step) * max(length - 1, 0) >= max(shape[axis], 1):
            raise ShapeError(f"a slice of {length} elements in steps of {step} does not fit axis {axis} of {shape}")
        if length > shape[axis]:
            raise ShapeError(f"a slice of {length} elements does not fit axis {axis} of {shape}")
    length_of = dict(zip(axes, lengths, strict=True))
    for axis in dropped:
        if length_of.get(axis) != 1:
            raise ShapeError(f"only a sliced axis of length 1 can be dropped, not axis {axis}")


def check_starts(shape: Shape, region: Region, starts: Sequence[int]) -> None:
    """Raises ArgumentError unless the region that begins at `starts` lies inside `shape`."""
    for axis, length, step, start in zip(region.axes, region.lengths, region.steps, starts, strict=True):
        if length == 0:
            continue
        last = start + (length - 1) * step
        if not (0 <= start < shape[axis] and 0 <= last < shape[axis]):
            raise ArgumentError(
                f"a slice of {length} elements from {start} in steps of {step} exceeds axis {axis} of {shape}"
            )


def region(shape: Shape, region: Region) -> Shape:
    """The shape of a region of an array of `shape`. Raises ShapeError."""
    kept = region_kept(shape, region)
    return tuple(dim for axis, dim in enumerate(kept) if axis not in region.dropped)


def region_kept(shape: Shape, region: Region) -> Shape:
    """The shape of a region before its `dropped` axes are removed. Raises ShapeError."""
    check_region(shape, region)
    length_of = dict(zip(region.axes, region.lengths, strict=True))
    return tuple(length_of.get(axis, dim) for axis, dim in enumerate(shape))


def _check_axes(axes: Shape, rank: int) -> None:
    ascending = all(a < b for a, b in pairwise(axes))
    if not ascending or any(not 0 <= axis < rank for axis in axes):
        raise ShapeError(f"axes {axes} must ascend and be in range for rank {rank}")
