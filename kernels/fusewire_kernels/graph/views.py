"""Computes the layout of each view: the places of its elements in a dense buffer, in elements. Copies nothing.

A layout addresses element (i, j, …) of a view at `offset + i·strides[0] + j·strides[1] + …`, moved further by the
slice starts that `moves` names. Every buffer is dense and in C order, so a value has a dense layout and each view
op makes a new layout from the one before. Only a reshape may fail: if no strides express it, the elements are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

from fusewire_kernels.plan.plan import Term
from fusewire_protos.ops.shapes import Region, Shape
from fusewire_protos.ops.strided import Strided, only_start

_CACHED = 1 << 14


class Move(NamedTuple):
    """Slice start number `start` moves a view by `stride` elements each."""

    start: int
    stride: int

    def in_bytes(self, itemsize_bytes: int) -> Term:
        return Term(self.start, self.stride * itemsize_bytes)


class Layout(NamedTuple):
    """The strides and the offset, in elements, that lead to a view's elements in the buffer of the viewed value.

    A stride is 0 along an axis on which the view repeats, and along an axis of length 1. So equal layouts are equal
    tuples.
    """

    shape: Shape
    strides: Shape
    offset: int
    moves: tuple[Move, ...]

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie in C order from the buffer's beginning."""
        return self.offset == 0 and not self.moves and self.strides == dense_strides(self.shape)


@lru_cache(_CACHED)
def dense_strides(shape: Shape) -> Shape:
    """Element strides of an array in C order, 0 along axes of length 1."""
    strides = []
    stride = 1
    for dim in reversed(shape):
        strides.append(stride if dim != 1 else 0)
        stride *= dim
    return tuple(reversed(strides))


@lru_cache(_CACHED)
def dense(shape: Shape) -> Layout:
    """The layout of a whole buffer of `shape`."""
    return Layout(shape, dense_strides(shape), 0, ())


@lru_cache(_CACHED)
def broadcast_to(layout: Layout, shape: Shape) -> Layout:
    """The layout repeated along the axes that `shape` adds in front, and along those where `shape` is longer."""
    if layout.shape == shape:
        return layout
    added = len(shape) - len(layout.shape)
    kept = zip(layout.shape, layout.strides, shape[added:], strict=True)
    strides = (0,) * added + tuple([stride if dim == wanted else 0 for dim, stride, wanted in kept])
    return Layout(shape, strides, layout.offset, layout.moves)


@lru_cache(_CACHED)
def transpose(layout: Layout, permutation: Shape) -> Layout:
    """The layout with its axes in the order of `permutation`. Axes that `permutation` leaves out must have length 1."""
    shape = tuple([layout.shape[axis] for axis in permutation])
    strides = tuple([layout.strides[axis] for axis in permutation])
    return Layout(shape, strides, layout.offset, layout.moves)


@lru_cache(_CACHED)
def reshape(layout: Layout, shape: Shape) -> Layout | None:
    """The layout of the same elements in the same order under another shape, or None if no strides express it."""
    if layout.shape == shape:
        return layout
    if prod(shape) == 0:
        return Layout(shape, (0,) * len(shape), layout.offset, layout.moves)
    strides = _reshaped_strides(merged_axes(layout.shape, layout.strides), shape)
    return None if strides is None else Layout(shape, strides, layout.offset, layout.moves)


def region(layout: Layout, part: Region, first_start: int) -> Layout:
    """The layout of a region. Its starts are the slice starts from number `first_start` on.

    A start that can have only one value becomes part of the offset, so a slice of a whole axis costs nothing.
    """
    shape, strides = list(layout.shape), list(layout.strides)
    offset, moves = layout.offset, list(layout.moves)
    for number, (axis, length, step) in enumerate(zip(part.axes, part.lengths, part.steps, strict=True)):
        only_start = _only_start(layout.shape[axis], length, step)
        if only_start is not None:
            offset += only_start * strides[axis]
        elif strides[axis] != 0:
            moves.append(Move(first_start + number, strides[axis]))
        shape[axis] = length
        strides[axis] = strides[axis] * step if length > 1 else 0
    if prod(shape) == 0:
        offset, moves = 0, []
    whole = Layout(tuple(shape), tuple(strides), offset, tuple(moves))
    return without_axes(whole, part.dropped)


def strided(line: Layout, part: Strided, start: int) -> Layout:
    """The layout of a strided view of a vector. The view begins where slice start number `start` says.

    If only one start is legal, it becomes part of the offset.
    """
    (step,) = line.strides
    only = only_start(line.shape, part)
    strides = tuple([stride * step if dim > 1 else 0 for dim, stride in zip(part.shape, part.strides, strict=True)])
    moves = line.moves if only is not None or step == 0 else (*line.moves, Move(start, step))
    return Layout(part.shape, strides, line.offset + (only or 0) * step, moves)


@lru_cache(_CACHED)
def region_along_axis(layout: Layout, axis: int, position: int, shape: Shape) -> Layout:
    """The region of `shape` that begins at `position` along one axis of a dense layout."""
    strides = tuple([stride if dim != 1 else 0 for dim, stride in zip(shape, layout.strides, strict=True)])
    return Layout(shape, strides, position * prod(layout.shape[axis + 1 :]), ())


@lru_cache(_CACHED)
def without_axes(layout: Layout, axes: Shape) -> Layout:
    """The layout without `axes`, each of length 1."""
    if not axes:
        return layout
    return transpose(layout, tuple([axis for axis in range(len(layout.shape)) if axis not in axes]))


@lru_cache(_CACHED)
def before_axes(layout: Layout, shape: Shape, following: int) -> Layout:
    """The layout broadcast to `shape`. It then repeats along `following` more axes behind its own axes."""
    ones = Layout(layout.shape + (1,) * following, layout.strides + (0,) * following, layout.offset, layout.moves)
    return broadcast_to(ones, shape)


@lru_cache(_CACHED)
def is_one_walk(shape: Shape, strides: Shape) -> bool:
    """Whether row-major order over these axes moves by one stride all the way."""
    axes = [(dim, stride) for dim, stride in zip(shape, strides, strict=True) if dim != 1]
    return all(outer == inner * dim for (_, outer), (dim, inner) in pairwise(axes))


@lru_cache(_CACHED)
def reach(layout: Layout) -> int:
    """How many elements of the buffer lie between the first and the last that a view shows, both included."""
    return 1 + sum([(dim - 1) * abs(stride) for dim, stride in zip(layout.shape, layout.strides, strict=True)])


def merged_axes(shape: Shape, strides: Shape) -> list[tuple[int, int]]:
    """The (extent, stride) of the fewest axes that visit the same elements in the same order. None has length 1."""
    merged: list[tuple[int, int]] = []
    for dim, stride in zip(shape, strides, strict=True):
        if dim == 1:
            continue
        if merged and merged[-1][1] == dim * stride:
            merged[-1] = (merged[-1][0] * dim, stride)
        else:
            merged.append((dim, stride))
    return merged


@lru_cache(_CACHED)
def behind_copy(source: Layout, view: Layout) -> tuple[tuple[tuple[int, int], ...], ...] | None:
    """The axes of `source` along which each axis of a view moves, if the view is one of a copy of `source` in C order.

    For each axis of the view it has the (extent, stride) of the fewest axes over the buffer that `source` views, the
    last one moving fastest. Returns None if the view begins elsewhere than the copy, or an axis does not consist of
    whole axes of the source.
    """
    if view.offset or view.moves:
        return None
    axes = merged_axes(source.shape, source.strides)
    walks = [_walk(axes, dim, stride) for dim, stride in zip(view.shape, view.strides, strict=True)]
    found = [walk for walk in walks if walk is not None]
    return tuple(found) if len(found) == len(walks) else None


def of_axes(source: Layout, axes: Sequence[tuple[int, int]]) -> Layout:
    """The layout of axes (extent, stride) that begins where `source` does."""
    strides = tuple([stride if extent != 1 else 0 for extent, stride in axes])
    return Layout(tuple([extent for extent, _ in axes]), strides, source.offset, source.moves)


def _walk(axes: list[tuple[int, int]], dim: int, step: int) -> tuple[tuple[int, int], ...] | None:
    """The parts of axes that an axis of a view of their copy visits, or None if it does not visit whole parts."""
    if dim == 1 or step == 0:
        return ((dim, 0),)
    found: list[tuple[int, int]] = []
    place = prod([extent for extent, _ in axes])  # how far neighbours along an axis are apart in the copy
    for extent, stride in axes:
        end, place = place, place // extent
        low, high = max(place, step), min(end, step * dim)
        if low >= high:
            continue
        if low % place or high % low:
            return None
        found.append((high // low, stride * (low // place)))
    merged = merged_axes(tuple([extent for extent, _ in found]), tuple([stride for _, stride in found]))
    return tuple(merged) if prod([extent for extent, _ in merged]) == dim else None


def _only_start(dim: int, length: int, step: int) -> int | None:
    """The one legal start of a slice that spans its axis from end to end, or None if several starts are legal."""
    if length == 0 or abs(step) * (length - 1) != dim - 1:
        return None
    return 0 if step > 0 else dim - 1


def _reshaped_strides(axes: list[tuple[int, int]], shape: Shape) -> Shape | None:
    """Strides of `shape` over merged axes, or None: from the last axis on, whole dims must multiply to each axis."""
    strides: list[int] = []
    left, stride = 1, 0  # elements of the current axis that no dim has used yet; the stride of the next dim
    for dim in reversed(shape):
        if dim == 1:
            strides.append(0)
            continue
        if left == 1:
            left, stride = axes.pop()
        if left % dim:
            return None
        strides.append(stride)
        left //= dim
        stride *= dim
    return tuple(reversed(strides))


# The views that strides always express: (layout of the operand, *attributes) → layout of the result.
VIEWS: dict[str, Callable[..., Layout]] = {
    "transpose": transpose,
    "broadcast_to": broadcast_to,
}
