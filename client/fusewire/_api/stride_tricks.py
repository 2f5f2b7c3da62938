"""Views that share the elements of an array, as in `numpy.lib.stride_tricks`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

from fusewire._api.array import Array
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.operations import axis_of, integers_of
from fusewire._api.ops.strided import strides_of, view_of
from fusewire._errors import ShapeError

__all__ = ["sliding_window_view"]


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
