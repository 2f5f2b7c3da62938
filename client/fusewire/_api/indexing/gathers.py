"""Joins the axes along which several indices select, so that one array of indices selects along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any, TypeVar

import numpy as np

from fusewire._api.indexing.keys import Gather, dtype_of_places
from fusewire._api.ops.operations import astype, from_the_front, reshape, transpose
from fusewire._errors import ShapeError
from fusewire._recording.record_op import Recorded, apply
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Shape

R = TypeVar("R", bound=Recorded)


def join_axes(x: R, gather: Gather) -> R:
    """Returns `x` with the axes of `gather` joined to one, its `joined_axis`."""
    shape, axes, first = x._spec.shape, gather.axes, gather.joined_axis
    if len(axes) == 1:
        return x
    x = _ordered(x, _order(gather, len(shape)))
    behind = x._spec.shape[first + len(axes) :]
    return reshape(x, (*x._spec.shape[:first], prod(shape[axis] for axis in axes), *behind))


def part_axes(joined: R, gather: Gather, shape: Shape) -> R:
    """Returns an array of `shape` from what `join_axes` made of it."""
    if len(gather.axes) == 1:
        return joined
    order = _order(gather, len(shape))
    parted = reshape(joined, [shape[axis] for axis in order])
    return _ordered(parted, [order.index(axis) for axis in range(len(shape))])


def joined_indices(gather: Gather, dims: Sequence[int], as_array: Callable[[Any], R]) -> Any:
    """Returns one array of indices for the joined axis: integers of the shape of the gather.

    `dims` are the lengths of the axes. If all indices are on this machine, so is the result. Otherwise the result is on
    the server, where an index out of range of its axis means the first or the last place.
    """
    if len(gather.axes) == 1:
        return gather.indices[0]
    if any(isinstance(each, Recorded) for each in gather.indices):
        places = [places_on_server(each, dim, as_array) for each, dim in zip(gather.indices, dims, strict=True)]
    else:
        places = [each.astype(np.int64) for each in gather.indices]
    joined = reduce(lambda outer, pair: outer * pair[1] + pair[0], zip(places[1:], dims[1:], strict=True), places[0])
    return joined if isinstance(joined, Recorded) else joined.astype(dtype_of_places(prod(dims)))


def places_on_server(indices: Any, length: int, as_array: Callable[[Any], R]) -> Any:
    """Returns indices of an axis of `length` on the server, as int64 from 0 to `length` − 1.

    Raises ShapeError if there are indices, but no place.
    """
    on_server = as_array(indices)
    if not length and 0 not in on_server._spec.shape:
        raise ShapeError("an axis of length 0 has no elements")
    if on_server is not indices:
        return astype(on_server, dtypes.int64)
    checks = on_server._recorder.owner.index_checks
    if checks is not None:
        checks.check(on_server, length)
    wide = astype(from_the_front(on_server, length), dtypes.int64)
    return apply(BY_NAME["clip"], (wide, 0, max(length - 1, 0)))


def _order(gather: Gather, rank: int) -> list[int]:
    """Returns all axes in an order that makes those of `gather` neighbours."""
    others = [axis for axis in range(rank) if axis not in gather.axes]
    first = gather.joined_axis
    return [*others[:first], *gather.axes, *others[first:]]


def _ordered(x: R, order: list[int]) -> R:
    return x if order == sorted(order) else transpose(x, order)
