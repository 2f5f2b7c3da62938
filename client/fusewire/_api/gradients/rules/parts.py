"""What several rules do to arrays: selecting and adding along an axis, filling, and turning around."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusewire._api.array import Array
from fusewire._api.ops import operations
from fusewire._api.ops.filled import counted, filled
from fusewire._recording.record_op import apply
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape


def full_beside(x: Array, shape: Shape, value: float, dtype: DType | None = None) -> Array:
    """Returns an array of one number, in the session of `x`, and in its dtype if none is given."""
    return filled(x.session, shape, value, x.dtype if dtype is None else dtype)


def along(axis: int, key: Any) -> tuple[Any, ...]:
    """Returns what stands in brackets to select by `key` along an axis."""
    return (*[slice(None)] * axis, key)


def flipped(x: Array, axis: int) -> Array:
    """Returns `x` in reverse order along an axis."""
    return x[along(axis, slice(None, None, -1))]


def joined(parts: Sequence[Array], axis: int) -> Array:
    """Returns arrays joined along an axis."""
    found: Array = apply(BY_NAME["concat"], parts, (axis,))
    return found


def scanned(name: str, x: Array, axis: int) -> Array:
    """Returns the result of an op such as cumulative_sum."""
    found: Array = apply(BY_NAME[name], (x,), (axis,))
    return found


def moved_ahead(x: Array, axis: int, distance: int, value: float) -> Array:
    """Returns `x` with each element where the one `distance` before it was along an axis, and `value` at the end."""
    dims = (*x.shape[:axis], distance, *x.shape[axis + 1 :])
    return joined([x[along(axis, slice(distance, None))], full_beside(x, dims, value)], axis)


def numbers_along(x: Array, axis: int) -> Array:
    """Returns 0, 1, … along an axis of `x`, in int64 and of the rank of `x`."""
    return operations.reshape(counted(x.session, x.shape[axis]), _alone(x.shape, axis))


def added_along(total: Array, places: Array, axis: int, values: Array) -> Array:
    """Returns `total` with values added at the places of each line along an axis."""
    key = [places if each == axis else numbers_along(values, each) for each in range(total.ndim)]
    return total.at[tuple(key)].add(values)


def kept_dims(shape: Shape, axes: Shape) -> Shape:
    """Returns the shape of a reduction that keeps its axes."""
    return tuple([1 if axis in axes else dim for axis, dim in enumerate(shape)])


def _alone(shape: Shape, axis: int) -> Shape:
    return tuple([dim if each == axis else 1 for each, dim in enumerate(shape)])
