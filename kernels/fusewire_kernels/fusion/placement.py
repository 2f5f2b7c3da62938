"""Where the elements of values lie in the iteration space of a group: the arithmetic behind "the same point".

The space of a group has `elements` points, numbered. A *placement* gives, for each axis of a shape, by how much the
number of the point grows a step; 0 along axes of length 1. So a value in C order is placed by its dense strides, its
transpose by those strides permuted, a reshape of it by finer or coarser ones: all without naming loops. Loops come
last: `breaks` are the strides at which some axis begins or ends, and between two neighbouring breaks lies one loop.
That works as long as each break divides the next.

Reduced elements of a space with reductions are one strided run of it, the *walk*.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

from fusewire_kernels.graph import views
from fusewire_kernels.graph.views import Layout
from fusewire_protos.shapes import Shape

_CACHED = 1 << 14

Placement = tuple[int, ...]
Partial = tuple[int | None, ...]  # a placement of which axes along which a view repeats are not known


class Walk(NamedTuple):
    """Points of a space `stride` apart, `extent` of them: what is reduced to one."""

    extent: int
    stride: int


@lru_cache(_CACHED)
def through_view(layout: Layout, shape: Shape, placement: Placement) -> Partial | None:
    """The placement of a view of a value of `shape` that is placed so.

    None if the view does not show every element of the value: then it cannot be met at the same point.
    """
    if not _shows_everything(layout, shape):
        return None
    axes = tuple(zip(shape, views.dense_strides(shape), placement, strict=True))
    found: list[int | None] = []
    for dim, stride in zip(layout.shape, layout.strides, strict=True):
        if stride == 0:
            found.append(0 if dim == 1 else None)
            continue
        parts = _parts_along(axes, Walk(dim, stride))
        if parts is None or not _is_even(parts):
            return None
        found.append(parts[-1].stride)
    return tuple(found)


@lru_cache(_CACHED)
def behind_view(layout: Layout, shape: Shape, placement: Placement) -> Placement | None:
    """The placement of a value of `shape` whose view is placed so: the inverse of `through_view`.

    None if the view hides elements or splits an axis of the value.
    """
    if not _shows_everything(layout, shape):
        return None
    seen = [axis for axis in zip(layout.shape, layout.strides, placement, strict=True) if axis[1] != 0]
    found: list[int] = []
    for dim, stride in zip(shape, views.dense_strides(shape), strict=True):
        around = [axis for axis in seen if axis[1] <= stride and stride * dim <= axis[0] * axis[1]]
        if dim != 1 and (not around or stride % around[0][1]):
            return None
        found.append(0 if dim == 1 else around[0][2] * (stride // around[0][1]))
    return tuple(found)


def agree(a: Partial, b: Partial) -> Partial | None:
    """What both say together, or None if they differ."""
    if a == b:
        return a
    if any(x != y for x, y in zip(a, b, strict=True) if x is not None and y is not None):
        return None
    return tuple([y if x is None else x for x, y in zip(a, b, strict=True)])


@lru_cache(_CACHED)
def complete(shape: Shape, partial: Partial, elements: int, walk: Walk | None) -> Placement | None:
    """The placement of a shape of which a part is known, in a space of `elements` points with this walk.

    Axes that are not known lie along the walk. The result covers the space once, or, where there is a walk, once but
    for the walk; None if that cannot be.
    """
    placement = _along_walk(shape, partial, walk)
    if placement is None:
        return None
    if prod(shape) == elements:
        return placement if _is_bijection(shape, placement, elements) else None
    if walk is None or prod(shape) * walk.extent != elements:
        return None
    is_fit = _is_bijection((*shape, walk.extent), (*placement, walk.stride), elements)
    return placement if is_fit else None


@lru_cache(_CACHED)
def breaks_of(shape: Shape, placement: Placement) -> frozenset[int]:
    """The strides of the space at which an axis begins or ends."""
    axes = [axis for axis in zip(shape, placement, strict=True) if axis[0] != 1]
    return frozenset([place for _, place in axes] + [place * dim for dim, place in axes])


@lru_cache(_CACHED)
def is_chain(breaks: frozenset[int]) -> bool:
    """Whether each break divides the next, so that loops exist that respect them all."""
    return all(large % small == 0 for small, large in pairwise(sorted(breaks)))


@lru_cache(_CACHED)
def is_uncut(axis: Walk, breaks: frozenset[int]) -> bool:
    """Whether no break lies inside an axis."""
    return not any(axis.stride < cut < axis.stride * axis.extent for cut in breaks)


@lru_cache(_CACHED)
def walks_evenly(shape: Shape, placement: Placement, strides: Shape, walk: Walk) -> bool:
    """Whether an argument with these strides moves by one stride along the whole walk."""
    parts = _parts_along(tuple(zip(shape, placement, strides, strict=True)), walk)
    assert parts is not None, "the breaks of a group are a chain"
    return _is_even(parts)


@lru_cache(_CACHED)
def walk_of_axes(shape: Shape, placement: Placement, axes: Shape) -> Walk | None:
    """The walk in row-major order over `axes`, or None if their elements are not evenly apart."""
    dims = tuple([shape[axis] for axis in axes])
    places = tuple([placement[axis] for axis in axes])
    if not views.is_one_walk(dims, places):
        return None
    moving = [place for dim, place in zip(dims, places, strict=True) if dim != 1]
    return Walk(prod(dims), moving[-1] if moving else 0)


def _shows_everything(layout: Layout, shape: Shape) -> bool:
    if layout.offset or layout.moves:
        return False
    return prod(dim for dim, stride in zip(layout.shape, layout.strides, strict=True) if stride) == prod(shape)


class _AxisPart(NamedTuple):
    """What one axis contributes to a walk: from which point, how many elements, and how far apart they are."""

    first: int
    extent: int
    stride: int


def _parts_along(axes: tuple[tuple[int, int, int], ...], walk: Walk) -> list[_AxisPart] | None:
    """The parts of (dim, place, stride) axes inside a walk, outermost first; None if it cuts through elements."""
    begin, end = walk.stride, walk.stride * walk.extent
    parts: list[_AxisPart] = []
    for dim, place, stride in axes:
        low, high = max(place, begin), min(place * dim, end)
        if dim == 1 or low >= high:
            continue
        if low % place or high % low:
            return None
        parts.append(_AxisPart(low, high // low, stride * (low // place)))
    return sorted(parts, reverse=True)


def _is_even(parts: list[_AxisPart]) -> bool:
    return views.is_one_walk(tuple([part.extent for part in parts]), tuple([part.stride for part in parts]))


def _along_walk(shape: Shape, partial: Partial, walk: Walk | None) -> Placement | None:
    placement: list[int] = []
    stride = walk.stride if walk is not None else 0
    count = 1
    for dim, place in zip(reversed(shape), reversed(partial), strict=True):
        if place is not None:
            placement.append(place)
            continue
        placement.append(stride)
        stride *= dim
        count *= dim
    if count != 1 and (walk is None or count != walk.extent):
        return None
    return tuple(reversed(placement))


def _is_bijection(shape: Shape, placement: Placement, elements: int) -> bool:
    """Whether a shape so placed meets each of `elements` points once."""
    reached = 1
    for place, dim in sorted(zip(placement, shape, strict=True)):
        if dim == 1:
            continue
        if place != reached:
            return False
        reached *= dim
    return reached == elements
