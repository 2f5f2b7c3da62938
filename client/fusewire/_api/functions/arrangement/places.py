"""Functions that move elements to other places of an array, or take them from there."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire._api.array import Array
from fusewire._api.functions.arrangement.joining import concat, stack
from fusewire._api.functions.arrangement.shapes import broadcast_arrays, broadcast_to, ravel, reshape, swapaxes
from fusewire._api.ops.operands import array_beside, arrays_of, asarray
from fusewire._api.ops.operations import Axis, axes_of, axis_of, from_the_front, integers_of
from fusewire._errors import ArgumentError, ShapeError
from fusewire._recording.record_op import apply
from fusewire_protos.ops import shapes
from fusewire_protos.ops.catalogue import BY_NAME

__all__ = ["choose", "flip", "fliplr", "flipud", "roll", "rot90", "take", "take_along_axis"]


def flip(x: Any, /, axis: Axis = None) -> Array:
    """Reverses the order of the elements of `x` along `axis`, or along all axes if `axis` is None."""
    given = asarray(x)
    axes = axes_of(axis, given.ndim)
    return given[tuple(slice(None, None, -1 if each in axes else 1) for each in range(given.ndim))]


def roll(x: Any, /, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Array:
    """Moves the elements of `x` by `shift` along `axis`; those that leave at one end come in at the other.

    Several axes have a shift each, or one for all. If `axis` is None, flattens `x` first and restores the shape then.
    """
    given = asarray(x)
    if axis is None:
        return reshape(roll(ravel(given), shift, 0), given.shape)
    axes = [axis_of(each, given.ndim) for each in integers_of(axis)]
    shifts = [operator.index(each) for each in integers_of(shift)]
    if len(axes) != len(shifts) and 1 not in (len(axes), len(shifts)):
        raise ArgumentError(f"roll by {len(shifts)} shifts along {len(axes)} axes")
    pairs = zip(axes * len(shifts), shifts, strict=True) if len(axes) == 1 else zip(axes, cycle(shifts), strict=False)
    moved = given.copy()
    for along, places in pairs:
        moved = _rolled(moved, places, along)
    return moved


def _rolled(x: Array, shift: int, axis: int) -> Array:
    length, before = x.shape[axis], (slice(None),) * axis
    first = -shift % length if length else 0
    return concat([x[*before, slice(first, None)], x[*before, slice(None, first)]], axis=axis) if first else x


def take(x: Any, /, indices: Any, axis: int | None = None) -> Array:
    """Returns the elements at `indices` along `axis`. If `axis` is None, `indices` select from the flat array.

    Raises IndexError for an index out of range in a list or a NumPy array. In an array on the server it means the first
    or the last element.
    """
    return array_beside(x, indices).take(indices, axis)


def take_along_axis(x: Any, indices: Any, /, axis: int | None = -1) -> Array:
    """Returns the elements of each vector along `axis` at the indices beside it; without an axis, of the flat array.

    `indices` have the rank of `x` and broadcast with it but along `axis`. Negative ones count from the back. One out of
    range on the server means the first or the last element, and a session that debugs raises IndexError at its next
    read. Raises IndexError for one of the host that is out of range, or no integer, and ShapeError for another rank.
    """
    given, at = arrays_of(x, indices)
    if axis is None:
        return take_along_axis(ravel(given), at, axis=0)
    axis = axis_of(axis, given.ndim)
    if at.ndim != given.ndim:
        raise ShapeError(f"take_along_axis takes indices of rank {given.ndim}, not {at.ndim}")
    if not at.dtype.is_integer:
        raise IndexError(f"indices have dtype {at.dtype.name}, not an integer one")
    length, checks = given.shape[axis], given.session.index_checks
    if not isinstance(indices, Array):
        _check_range(np.asarray(indices), length)
    elif checks is not None:
        checks.check(at, length)
    places = from_the_front(at, length)
    whole = shapes.broadcast(_without(given, axis), _without(places, axis))
    fitted = [broadcast_to(each, (*whole[:axis], each.shape[axis], *whole[axis:])) for each in (given, places)]
    taken: Array = apply(BY_NAME["take_along_axis"], fitted, (axis,))
    return taken


def choose(x: Any, choices: Any, /, mode: str = "raise") -> Array:
    """Returns for each element of the integers `x` the element beside it of the array `choices[x]`.

    All broadcast together. With `mode` "wrap" an index counts modulo the number of choices, with "clip" the nearest one
    is meant. With "raise" ArgumentError is raised for an index of the host out of range; one on the server means the
    first or the last choice. Raises ArgumentError for another mode, and TypeError for floats.
    """
    given, *arrays = broadcast_arrays(x, *choices)
    count = len(arrays)
    if given.dtype.is_floating or not count:
        raise TypeError(f"choose takes integers and one array or more, not {given.dtype.name} and {count} arrays")
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"choose has no mode {mode!r}, but 'raise', 'wrap' and 'clip'")
    if mode == "raise" and not isinstance(x, Array) and np.size(x) and not 0 <= np.min(x) <= np.max(x) < count:
        raise ArgumentError(f"choices from {np.min(x)} to {np.max(x)} of {count}")
    wide = given.astype("int64")
    at = wide % count if mode == "wrap" else wide.clip(0, count - 1)
    return take_along_axis(stack(arrays), at.reshape(1, *at.shape), axis=0)[0]


def _check_range(indices: npt.NDArray[Any], length: int) -> None:
    if indices.size and (indices.min() < -length or indices.max() >= length):
        raise IndexError(f"indices from {indices.min()} to {indices.max()} along an axis of length {length}")


def _without(x: Array, axis: int) -> tuple[int, ...]:
    return (*x.shape[:axis], *x.shape[axis + 1 :])


def fliplr(x: Any, /) -> Array:
    """Reverses the order of columns. Raises AxisError below rank 2."""
    return flip(x, axis=1)


def flipud(x: Any, /) -> Array:
    """Reverses the order of rows. Raises AxisError for rank 0."""
    return flip(x, axis=0)


def rot90(x: Any, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Turns `x` by `k` quarters, from the first of two axes towards the second.

    Raises AxisError for an axis out of range, and ShapeError unless there are two different axes.
    """
    given = asarray(x)
    counted = [axis_of(each, given.ndim) for each in axes]
    if len(counted) != 2 or len(set(counted)) != 2:
        raise ShapeError(f"rot90 takes two different axes, not {axes}")
    first, second = counted
    quarters = operator.index(k) % 4
    if quarters == 2:
        return flip(given, axis=(first, second))
    if quarters == 1:
        return swapaxes(flip(given, axis=second), first, second)
    return flip(swapaxes(given, first, second), axis=second) if quarters else given.copy()
