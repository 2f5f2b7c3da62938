"""Functions that give the elements of an array another shape or another order of axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.functions.creation.creation import ShapeLike
from fusewire._api.ops import operations
from fusewire._api.ops.operands import arrays_of, asarray
from fusewire._api.ops.operations import Axis, axis_of, integers_of, shape_of
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops import shapes
from fusewire_protos.ops.shapes import Shape

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "matrix_transpose",
    "moveaxis",
    "ndim",
    "permute_dims",
    "ravel",
    "reshape",
    "rollaxis",
    "shape",
    "size",
    "squeeze",
    "swapaxes",
    "transpose",
]


def reshape(x: Any, /, shape: ShapeLike, order: str = "C", *, copy: bool | None = None) -> Array:
    """Returns the elements of `x` in another shape. One dim may be −1: it is computed from the others.

    With `order` "F" the first index changes fastest. Raises ArgumentError, a ValueError, for another order, and if
    `copy` is False: no result shares its elements with another array.
    """
    if copy is False:
        raise ArgumentError("copy=False: a reshaped array is a value of its own; leave copy out")
    return operations.reshape(asarray(x), shape, order)


def ravel(x: Any, /, order: str = "C") -> Array:
    """Returns the elements of `x` as a vector, in row-major order, or with `order` "F" in column-major order."""
    return operations.reshape(asarray(x), (-1,), order)


def transpose(x: Any, /, axes: Sequence[int] | None = None) -> Array:
    """Returns `x` with its axes in the order of `axes`, or in reverse order if `axes` is None."""
    return operations.transpose(asarray(x), axes)


permute_dims = transpose


def matrix_transpose(x: Any, /) -> Array:
    """Returns `x` with its last two axes exchanged."""
    return asarray(x).mT


def swapaxes(x: Any, /, axis1: int, axis2: int) -> Array:
    """Returns `x` with two axes exchanged. Raises AxisError for an axis that `x` has not."""
    given = asarray(x)
    order = list(range(given.ndim))
    first, second = (axis_of(axis, given.ndim) for axis in (axis1, axis2))
    order[first], order[second] = order[second], order[first]
    return operations.transpose(given, order)


def squeeze(x: Any, /, axis: Axis = None) -> Array:
    """Returns `x` without the axes in `axis`, or without all axes of length 1 if `axis` is None."""
    return operations.squeeze(asarray(x), axis)


def expand_dims(x: Any, /, axis: int | Sequence[int]) -> Array:
    """Returns `x` with a new axis of length 1 at each place in `axis`."""
    return operations.expand_dims(asarray(x), axis)


def broadcast_to(x: Any, /, shape: ShapeLike) -> Array:
    """Returns `x` in a shape to which it broadcasts. Raises ShapeError if it does not."""
    return operations.broadcast_to(asarray(x), shape)


def moveaxis(x: Any, /, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Returns `x` with the axes `source` at the places `destination`; the other axes keep their order.

    Raises AxisError for an axis out of range, and ShapeError if one is named twice or the numbers of axes differ.
    """
    given = asarray(x)
    sources = _distinct(source, given.ndim, "source")
    places = _distinct(destination, given.ndim, "destination")
    if len(sources) != len(places):
        raise ShapeError(f"moveaxis moves {len(sources)} axes to {len(places)} places")
    order = [axis for axis in range(given.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return operations.transpose(given, order)


def rollaxis(x: Any, /, axis: int, start: int = 0) -> Array:
    """Returns `x` with `axis` before the axis that stood at `start`, or behind all if that is the rank."""
    given = asarray(x)
    along, before = axis_of(axis, given.ndim), axis_of(start, given.ndim + (start >= 0))
    return moveaxis(given, along, before - (along < before))


def shape(x: Any, /) -> Shape:
    """Returns the lengths of the axes of `x`, a tuple. Waits for nothing."""
    return tuple(x.shape) if isinstance(x, Array) else np.shape(x)


def ndim(x: Any, /) -> int:
    """Returns the number of axes of `x`. Waits for nothing."""
    return len(shape(x))


def size(x: Any, /, axis: int | None = None) -> int:
    """Returns the number of elements of `x`, or its length along `axis`. Waits for nothing."""
    lengths = shape(x)
    return math.prod(lengths) if axis is None else lengths[axis_of(axis, len(lengths))]


def _distinct(axes: int | Sequence[int], rank: int, parameter: str) -> list[int]:
    counted = [axis_of(axis, rank, parameter) for axis in integers_of(axes)]
    if len(set(counted)) != len(counted):
        raise ShapeError(f"axis {axes} names an axis twice")
    return counted


def broadcast_arrays(*arrays: Any) -> list[Array]:
    """Returns the arrays in the one shape to which they broadcast. Raises ShapeError if there is none."""
    given = arrays_of(*arrays)
    shape = broadcast_shapes(*[each.shape for each in given])
    return [operations.broadcast_to(each, shape) for each in given]


def broadcast_shapes(*given: ShapeLike) -> Shape:
    """Returns the shape to which arrays of these shapes broadcast. Raises ShapeError if there is none."""
    return shapes.broadcast(*map(shape_of, given)) if given else ()


def atleast_1d(*arrays: Any) -> Any:
    """Returns an array of rank 0 as one of shape (1,), and copies of others; of several arrays, a tuple."""
    return _each(arrays, lambda x: operations.reshape(x, (1,)) if not x.ndim else x)


def atleast_2d(*arrays: Any) -> Any:
    """Returns an array of rank 0 or 1 as a matrix of one row, and copies of others; of several arrays, a tuple."""
    return _each(arrays, lambda x: operations.reshape(x, (1, x.size)) if x.ndim < 2 else x)


def atleast_3d(*arrays: Any) -> Any:
    """Returns arrays in rank 3 at least: (n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1); of several, a tuple."""
    return _each(arrays, _in_three_axes)


def _in_three_axes(x: Array) -> Array:
    if x.ndim < 2:
        return operations.reshape(x, (1, x.size, 1))
    return operations.reshape(x, (*x.shape, 1)) if x.ndim == 2 else x


def _each(arrays: Sequence[Any], change: Callable[[Array], Array]) -> Any:
    pairs = [(each, change(each)) for each in arrays_of(*arrays)]
    changed = tuple(given.copy() if result is given else result for given, result in pairs)
    return changed[0] if len(changed) == 1 else changed
