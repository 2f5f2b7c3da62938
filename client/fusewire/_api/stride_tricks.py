"""Views that share the elements of an array, as in `numpy.lib.stride_tricks`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

from fusewire._api.array import Array
from fusewire._api.functions.creation.creation import ShapeLike
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.operations import axis_of, integers_of, shape_of
from fusewire._api.ops.strided import strides_of, view_of
from fusewire._errors import ArgumentError, ShapeError

__all__ = ["as_strided", "sliding_window_view"]


def as_strided(
    x: Any, /, shape: ShapeLike | None = None, strides: Sequence[int] | None = None, *, writeable: bool = False
) -> Array:
    """Returns the view of `x` of this shape whose neighbours along each axis are `strides` bytes apart.

    Both are by default those of `x`. The view is a value: nothing can be written to `x` through it. Raises ShapeError
    or ArgumentError if it does not lie in `x`, for strides that are not of whole elements, and for `writeable`.
    """
    if writeable:
        raise ArgumentError("as_strided returns a value, which is not writeable; assign to x[key] itself")
    given = asarray(x)
    dims = given.shape if shape is None else shape_of(shape)
    steps = [divmod(operator.index(each), given.itemsize) for each in (given.strides if strides is None else strides)]
    if len(steps) != len(dims) or any(part for _, part in steps):
        raise ArgumentError(f"strides {strides} for shape {dims} of elements of {given.itemsize} bytes")
    return view_of(given, dims, [step for step, _ in steps], 0)


def sliding_window_view(
    x: Any, /, window_shape: SupportsIndex | Sequence[int], axis: int | Sequence[int] | None = None
) -> Array:
    """Returns all windows of `window_shape` along `axis`: the axes of `x` say where a window begins, the last ones are
    those of the window.

    It is one view, whose windows share the elements of `x`; read as a whole, it has them once for each window. If
    `axis` is None, the windows have all axes. Raises ShapeError for a window that is longer than its axis or negative,
    and AxisError for an axis out of range.
    """
    given = asarray(x)
    window = [operator.index(each) for each in integers_of(window_shape)]
    axes = [axis_of(each, given.ndim) for each in (range(given.ndim) if axis is None else integers_of(axis))]
    if len(window) != len(axes):
        raise ShapeError(f"a window of {len(window)} axes does not fit {len(axes)} axes")
    places, strides = [*given.shape], strides_of(given.shape)
    for along, length in zip(axes, window, strict=True):
        if not 0 <= length <= places[along]:
            raise ShapeError(f"a window of shape {tuple(window)} does not fit an array of shape {given.shape}")
        places[along] -= length - 1
    return view_of(given, (*places, *window), (*strides, *[strides[along] for along in axes]), 0)
