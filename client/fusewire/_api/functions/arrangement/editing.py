"""Functions that return an array with elements added, left out, or joined from blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire._api.array import Array
from fusewire._api.functions.arrangement.joining import concat, tile
from fusewire._api.functions.arrangement.shapes import broadcast_to, moveaxis, ravel
from fusewire._api.functions.creation.creation import ShapeLike
from fusewire._api.functions.ordering.selection import flatnonzero
from fusewire._api.ops.filled import filled
from fusewire._api.ops.operands import array_beside, arrays_of, asarray
from fusewire._api.ops.operations import astype, axis_of, shape_of
from fusewire._errors import ArgumentError, ShapeError

__all__ = ["block", "delete", "insert", "resize", "trim_zeros"]

Places = npt.NDArray[np.int64]


def insert(x: Any, indices: Any, values: Any, /, axis: int | None = None) -> Array:
    """Returns `x` with `values` before the places `indices` along `axis`; without an axis, of the flattened array.

    `indices` are an integer, a slice, or a sequence of integers or booleans; the places are those of `x`. `values` are
    cast to the dtype of `x` and broadcast to what is inserted. Raises IndexError for a place out of range.
    """
    given, along = _along(x, axis)
    length = given.shape[along]
    new = astype(array_beside(values, given), given.dtype, copy=False)
    new = new.reshape((1,) * max(given.ndim - new.ndim, 0) + new.shape)
    places = _insertion_places(indices, length)
    if np.ndim(indices) == 0 and not isinstance(indices, slice):  # one block of values
        new = moveaxis(new, 0, along)
        places = np.repeat(places, new.shape[along])
    shape = (*given.shape[:along], len(places), *given.shape[along + 1 :])
    return concat([given, broadcast_to(new, shape)], axis=along).take(_merged(places, length), axis=along)


def _insertion_places(indices: Any, length: int) -> Places:
    """Returns the places before which to insert, from 0 to `length`."""
    if isinstance(indices, slice):
        return np.arange(*indices.indices(length))
    given = np.asarray(indices)
    if given.dtype == np.bool_:
        given = np.flatnonzero(given)
    elif not given.size:
        given = given.astype(np.int64)
    elif given.dtype.kind not in "iu":
        raise IndexError(f"places to insert at are integers, not {given.dtype}")
    places = given.reshape(-1).astype(np.int64)
    if places.size and not (-length <= places.min() and places.max() <= length):
        raise IndexError(f"places from {places.min()} to {places.max()} along an axis of length {length}")
    return np.where(places < 0, places + length, places)


def _merged(places: Places, length: int) -> Places:
    """Returns for each element of the result where it stands among the `length` old and then the new elements."""
    order = np.argsort(places, kind="stable")
    at = np.empty_like(places)
    at[order] = places[order] + np.arange(len(places))
    merged = np.empty(length + len(places), np.int64)
    is_old = np.ones(len(merged), np.bool_)
    is_old[at] = False
    merged[at] = length + np.arange(len(places))
    merged[is_old] = np.arange(length)
    return merged


def delete(x: Any, indices: Any, /, axis: int | None = None) -> Array:
    """Returns `x` without the elements at `indices` along `axis`; without an axis, of the flattened array.

    `indices` are an integer, a slice, or a sequence of integers or booleans. Raises IndexError for one out of range.
    """
    given, along = _along(x, axis)
    length = given.shape[along]
    is_kept = np.ones(length, np.bool_)
    chosen = indices if isinstance(indices, slice) else np.asarray(indices)
    if not isinstance(chosen, slice) and not chosen.size:
        chosen = chosen.astype(np.int64)
    is_kept[chosen] = False
    return given.take(np.flatnonzero(is_kept), axis=along)


def _along(x: Any, axis: int | None) -> tuple[Array, int]:
    """Returns an array, and the axis that is meant. Without an axis the array is flattened."""
    given = asarray(x)
    return (ravel(given), 0) if axis is None else (given, axis_of(axis, given.ndim))


def resize(x: Any, /, new_shape: ShapeLike) -> Array:
    """Returns the elements of `x` in row-major order in another shape, from the start again if they are too few.

    Of no elements all are 0.
    """
    flat, shape = ravel(asarray(x)), shape_of(new_shape)
    size = math.prod(shape)
    if not flat.size:
        return filled(flat.session, shape, 0, flat.dtype)
    return tile(flat, max(-(-size // flat.size), 1))[:size].reshape(shape)


def trim_zeros(x: Any, /, trim: str = "fb") -> Array:
    """Returns a vector without its zeros at the front ("f" in `trim`), at the back ("b"), or both. Waits for places.

    Raises ShapeError for another rank, and ArgumentError for another `trim`.
    """
    given, wanted = asarray(x), trim.lower()
    if given.ndim != 1:
        raise ShapeError(f"trim_zeros takes a vector, not rank {given.ndim}")
    if wanted not in ("f", "b", "fb", "bf"):
        raise ArgumentError(f"trim_zeros has no trim {trim!r}, but 'f', 'b' and 'fb'")
    places = flatnonzero(given).numpy()
    if not len(places):
        return given[:0]
    first, last = int(places[0]), int(places[-1])
    return given[first if "f" in wanted else 0 : last + 1 if "b" in wanted else given.size]


def block(arrays: Any, /) -> Array:
    """Returns the array that nested lists of blocks show: the innermost lists are joined along the last axis.

    Each level further out is joined along the axis before. Raises ArgumentError for an empty list and for lists of
    different depths, and TypeError for a tuple.
    """
    depth = _depth(arrays)
    leaves = arrays_of(*_leaves(arrays))
    rank = max(depth, *[each.ndim for each in leaves])
    remaining = iter([each.reshape((1,) * (rank - each.ndim) + each.shape) for each in leaves])

    def joined(part: Any, axis: int) -> Array:
        return (
            concat([joined(each, axis + 1) for each in part], axis=axis) if isinstance(part, list) else next(remaining)
        )

    result = joined(arrays, rank - depth)
    return result if isinstance(arrays, list) else result.copy()


def _depth(part: Any) -> int:
    if isinstance(part, tuple):
        raise TypeError("block takes lists of blocks, and no tuples")
    if not isinstance(part, list):
        return 0
    depths = {_depth(each) for each in part}
    if len(depths) != 1:
        raise ArgumentError("block takes no empty list, and lists of one depth")
    return depths.pop() + 1


def _leaves(part: Any) -> Sequence[Any]:
    return [leaf for each in part for leaf in _leaves(each)] if isinstance(part, list) else [part]
