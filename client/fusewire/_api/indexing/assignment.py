"""Records `x[key] = value` as ops that make the new value of `x`."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np

from fusewire._api.indexing import keys
from fusewire._api.indexing.counted_key import with_counted
from fusewire._api.indexing.keys import Index
from fusewire._api.indexing.selection import region_of
from fusewire._api.operations import astype, broadcast_to, reshape, take, take_places, transpose
from fusewire._errors import ArgumentError, ShapeError
from fusewire._recording.record_op import Recorded, apply, create
from fusewire_protos.ops import dtypes, shapes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Shape

R = TypeVar("R", bound=Recorded)


def with_item(x: R, key: Any, value: Any, as_array: Callable[[Any], R]) -> R:
    """Returns the new value of `x` after `x[key] = value`. If several values go to one element, the last value stays.

    `value` is an array, or a Python or NumPy scalar. `as_array` uploads masks and indices.
    """
    mask = _mask_of(key)
    if mask is not None:
        return _with_masked(x, mask, value, as_array)
    index = keys.read_index(with_counted(x, key), x._spec.shape)
    if index.gather is None:
        return _with_region(x, index, _in_region(value, x._spec.shape, index))
    if index.region is None:
        return _with_gathered(x, index, value, as_array)
    part = region_of(x, index.region, index.starts)
    return _with_region(x, index, _with_gathered(part, index, value, as_array))


def _with_region(x: R, index: Index, value: Any) -> R:
    region = index.region or keys.whole(x._spec.shape)
    starts = index.starts or (0,) * len(region.axes)
    result: R = apply(BY_NAME["assign_slice"], (x, value), tuple(region), starts)
    return result


def _in_region(value: Any, shape: Shape, index: Index) -> Any:
    """Removes the axes of `value` that the region of `index` in an array of `shape` does not have."""
    if not isinstance(value, Recorded):
        return value
    if index.new_axes:
        return _laid_out(value, index, (), ())
    return _without_leading_ones(value, len(shape) - (len(index.region.dropped) if index.region else 0))


def _with_gathered(part: R, index: Index, value: Any, as_array: Callable[[Any], R]) -> R:
    """Returns the new value of `part` after an assignment. `part` is the region of `index`, and `index` gathers."""
    assert index.gather is not None
    axis, given, shape = index.gathered_axis, index.gather.indices, part._spec.shape
    is_written: Recorded
    if isinstance(given, Recorded):
        is_written = _is_at(given, shape[axis])
        value = _laid_out(value, index, shape, given._spec.shape)
    else:
        writes = keys.last_writes(given, shape[axis])
        is_written = as_array(writes.is_written)
        value = _laid_out(value, index, shape, given.shape)
        if isinstance(value, Recorded) and value._spec.shape[axis] > 1:
            value = take_places(value, as_array(writes.writer), axis)
    if isinstance(value, Recorded) and value._spec.shape[axis] == 0:
        return part
    return _where(is_written, value, part, behind=len(shape) - axis - 1)


def _is_at(index: R, length: int) -> R:
    """Returns a boolean for each place of an axis of `length`, which tells whether `index` selects the place.

    `index` is one integer on the server.
    """
    if prod(index._spec.shape) != 1:
        raise ArgumentError(
            "assignment takes one index on the server at a time; read several of them: x[indices.numpy()] = value"
        )
    scalars = (dtypes.int64, 0), (dtypes.int64, 1)
    attributes = length, dtypes.int64.code
    places = create(type(index), index._recorder.owner.recorder(), BY_NAME["arange"], scalars, attributes)
    result: R = apply(BY_NAME["equal"], (places, take(places, reshape(index, ()), 0)))
    return result


def _laid_out(value: Any, index: Index, part: Shape, indices: Shape) -> Any:
    """Reshapes `value`, which broadcasts to the shape that `index` selects, to broadcast to the region of shape `part`.

    Joins the axes of the indices, which have the shape `indices`, to one axis, and removes the new axes of `index`.
    """
    if not isinstance(value, Recorded):
        return value
    value = _of_rank(value, index.selected(part, indices))
    if index.gather is not None:
        value = _joined(value, index.gather, indices)
    old = [dim for axis, dim in enumerate(value._spec.shape) if axis not in index.new_axes]
    return reshape(value, old) if index.new_axes else value


def _of_rank(value: R, target: Shape) -> R:
    """Reshapes `value` to the rank of `target`. Raises ShapeError if `value` does not broadcast to `target`."""
    value = _without_leading_ones(value, len(target))
    shape = value._spec.shape
    shapes.broadcast_to(shape, target)
    return value if len(shape) == len(target) else reshape(value, (1,) * (len(target) - len(shape)) + shape)


def _joined(value: R, gather: keys.Gather, indices: Shape) -> R:
    """Joins the axes of the indices in `value` to one axis, and moves this axis to where the gather selects."""
    shape, first = value._spec.shape, 0 if gather.comes_first else gather.axis
    behind = first + len(indices)
    if prod(shape[first:behind]) != 1:
        value = broadcast_to(value, shape[:first] + indices + shape[behind:])
    others = [axis for axis in range(len(shape)) if not first <= axis < behind]
    if first != gather.axis:
        value = transpose(value, [*others[: gather.axis], *range(first, behind), *others[gather.axis :]])
    dims = [shape[axis] for axis in others]
    joined = prod(value._spec.shape[gather.axis : gather.axis + len(indices)])
    return reshape(value, [*dims[: gather.axis], joined, *dims[gather.axis :]])


def _mask_of(key: Any) -> Any:
    """Returns `key` as an array of booleans, on this machine or on the server, or None if `key` is no mask."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if isinstance(key, Recorded):
        return key if key._spec.dtype.is_boolean else None
    host = np.asarray(key) if isinstance(key, list | np.ndarray) else None
    return host if host is not None and host.dtype == np.bool_ else None


def _with_masked(x: R, mask: Any, value: Any, as_array: Callable[[Any], R]) -> R:
    """Returns the new value of `x` after an assignment under `mask`, which has the shape of the first axes of `x`."""
    shape, of_mask = x._spec.shape, mask._spec.shape if isinstance(mask, Recorded) else mask.shape
    keys.check_mask(of_mask, shape)
    behind = shape[len(of_mask) :]
    if isinstance(value, Recorded) and not isinstance(mask, Recorded):
        rows = reshape(x, (prod(of_mask), *behind))
        index = Index(None, (), None, keys.Gather(0, np.flatnonzero(mask), comes_first=False))
        return reshape(_with_gathered(rows, index, value, as_array), shape)
    if isinstance(value, Recorded):
        value = _one_for_all(value, behind)
    return _where(as_array(mask), value, x, behind=len(behind))


def _one_for_all(value: R, shape: Shape) -> R:
    """Reshapes `value` to broadcast to `shape`, the shape of each part of `x` that a mask on the server selects."""
    value = _without_leading_ones(value, len(shape))
    try:
        shapes.broadcast_to(value._spec.shape, shape)
    except ShapeError as error:
        raise ShapeError(
            f"{error}; a mask on the server takes one value for all of its elements; or use where(mask, value, x)"
        ) from None
    return value


def _where(condition: Recorded, value: Any, x: R, *, behind: int) -> R:
    """Returns `value` where `condition` holds, else `x`. The condition lacks the last `behind` axes of `x`."""
    if behind:
        condition = reshape(condition, condition._spec.shape + (1,) * behind)
    result: R = apply(BY_NAME["where"], (condition, _in_dtype_of(x, value), x))
    return result


def _in_dtype_of(x: R, value: Any) -> Any:
    """Casts `value` to the dtype of `x`, because a promotion of `x` could change elements that are not assigned."""
    dtype = x._spec.dtype
    if isinstance(value, Recorded):
        return astype(value, dtype, copy=False)
    given = dtypes.from_numpy(value.dtype) if isinstance(value, np.generic) else dtypes.of_scalar(value, dtype)
    if given is dtype:
        return value
    plain = value.item() if isinstance(value, np.generic) else value
    scalar = create(type(x), x._recorder.owner.recorder(), BY_NAME["full"], ((given, plain),), ((), given.code))
    return astype(scalar, dtype)


def _without_leading_ones(value: Any, rank: int) -> Any:
    shape = value._spec.shape
    surplus = len(shape) - rank
    if surplus > 0 and all(dim == 1 for dim in shape[:surplus]):
        return reshape(value, shape[surplus:])
    return value
