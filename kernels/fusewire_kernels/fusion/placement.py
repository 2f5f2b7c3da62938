"""Computes at which points of a group's iteration space the elements of a value lie.

The space of a group has `elements` points, numbered from 0. A *placement* has one number for each axis of a shape: the
distance between the points of two neighbouring elements along the axis. The number is 0 for an axis of length 1. If the
elements of a value lie at the points in C order, the placement is the dense strides of the value. The placement of the
value's transpose is then the same strides permuted, and the placement of its reshape is finer or coarser strides.

Placements need no loops. The loops of a group are found once all its values are placed. An axis begins at its distance,
and it ends at its distance times its length. The *breaks* of a group are all these numbers of all its axes. There is
one loop for each two neighbouring breaks. Such loops exist if each break divides the next.

A *walk* is the points that a reduction reduces to one. The points of a walk are evenly apart.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

from fusewire_kernels.graph import views
from fusewire_kernels.graph.views import Layout
from fusewire_protos.ops.shapes import Shape

_CACHED = 1 << 14

Placement = tuple[int, ...]
Partial = tuple[int | None, ...]  # a placement with None for each axis along which a view repeats; any number fits


class Walk(NamedTuple):
    """`extent` points of a space, each `stride` behind the one before.

    A walk is the points that a reduction reduces to one, or the points of an axis.
    """

    extent: int
    stride: int


@lru_cache(_CACHED)
def placement_of_view(layout: Layout, shape: Shape, placement: Placement) -> Partial | None:
    """Returns the placement of a view, given the `shape` and the `placement` of the viewed value.

    Returns None if the view does not show every element of the value, because the view then has other points than the
    value. Returns None also if no even distance is found along an axis of the view.
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
def placement_of_source(layout: Layout, shape: Shape, placement: Placement) -> Placement | None:
    """Returns the placement of a value of `shape`, given that of its view: the inverse of `placement_of_view`.

    Returns None if the view hides elements or splits an axis of the value.
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
    """Returns the placement that agrees with `a` and with `b`, or None if `a` and `b` contradict each other."""
    if a == b:
        return a
    if any(x != y for x, y in zip(a, b, strict=True) if x is not None and y is not None):
        return None
    return tuple([y if x is None else x for x, y in zip(a, b, strict=True)])


@lru_cache(_CACHED)
def complete(shape: Shape, partial: Partial, elements: int, walk: Walk | None) -> Placement | None:
    """Completes a partial placement of a shape in a space of `elements` points with this walk.

    The unknown axes are placed along the walk. If the shape has as many elements as the space has points, the result
    visits each point once. If the shape has only one element for each walk, the result visits one point of each walk.
    Returns None if there is no such placement.
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
    """Returns the breaks of a placed shape: for each axis its distance, and its distance times its length."""
    axes = [axis for axis in zip(shape, placement, strict=True) if axis[0] != 1]
    return frozenset([place for _, place in axes] + [place * dim for dim, place in axes])


@lru_cache(_CACHED)
def is_chain(breaks: frozenset[int]) -> bool:
    """Returns whether each break divides the next, so that loops between the breaks exist."""
    return all(large % small == 0 for small, large in pairwise(sorted(breaks)))


@lru_cache(_CACHED)
def is_uncut(axis: Walk, breaks: frozenset[int]) -> bool:
    """Returns whether no break lies inside an axis, so that the axis can be one loop."""
    return not any(axis.stride < cut < axis.stride * axis.extent for cut in breaks)


@lru_cache(_CACHED)
def walks_evenly(shape: Shape, placement: Placement, strides: Shape, walk: Walk) -> bool:
    """Returns whether an argument with these memory strides moves by the same stride at each step of the walk."""
    parts = _parts_along(tuple(zip(shape, placement, strides, strict=True)), walk)
    assert parts is not None, "the breaks of a group are a chain"
    return _is_even(parts)


@lru_cache(_CACHED)
def walk_of_axes(shape: Shape, placement: Placement, axes: Shape) -> Walk | None:
    """Returns the walk that visits `axes` in row-major order, or None if their points are not evenly apart."""
    dims = tuple([shape[axis] for axis in axes])
    places = tuple([placement[axis] for axis in axes])
    if not views.is_one_walk(dims, places):
        return None
    moving = [place for dim, place in zip(dims, places, strict=True) if dim != 1]
    return Walk(prod(dims), moving[-1] if moving else 0)


def _shows_everything(layout: Layout, shape: Shape) -> bool:
    if layout.offset or layout.moves:
        return False
    moving = [(dim, stride) for dim, stride in zip(layout.shape, layout.strides, strict=True) if stride]
    return _is_bijection(tuple([dim for dim, _ in moving]), tuple([stride for _, stride in moving]), prod(shape))


class _AxisPart(NamedTuple):
    """The part of an axis that lies on a walk.

    `first` is the distance of neighbouring elements in points, `stride` their distance in memory. `extent` is their
    number.
    """

    first: int
    extent: int
    stride: int


def _parts_along(axes: tuple[tuple[int, int, int], ...], walk: Walk) -> list[_AxisPart] | None:
    """Returns the parts of axes that lie on a walk, outermost first. Returns None if an end of the walk splits an axis.

    An axis is given as (dim, place, stride). `dim` is its length. `place` is the distance of neighbouring elements in
    points, `stride` their distance in memory.
    """
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
    """Returns whether a shape with this placement visits each of `elements` points once."""
    reached = 1
    for place, dim in sorted(zip(placement, shape, strict=True)):
        if dim == 1:
            continue
        if place != reached:
            return False
        reached *= dim
    return reached == elements
