"""Records `x[key] = value` as ops that make the new value of `x`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

from fusewire._api.indexing import keys
from fusewire._api.indexing.counted_key import with_counted
from fusewire._api.indexing.gathers import join_axes, joined_indices, part_axes, places_on_server
from fusewire._api.indexing.keys import Gather, Index
from fusewire._api.indexing.selection import get_item, region_of, with_masks_read
from fusewire._api.indexing.writes import Combination, Write, chosen, overwritten
from fusewire._api.ops.operations import broadcast_to, reshape, transpose
from fusewire._conversions import Host
from fusewire._errors import ArgumentError, ShapeError
from fusewire._recording.record_op import Recorded, apply
from fusewire_protos.ops import shapes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Shape

R = TypeVar("R", bound=Recorded)


def with_item(x: R, key: Any, value: Any, as_array: Callable[[Any], R]) -> R:
    """Returns the new value of `x` after `x[key] = value`. If several values go to one element, the last value stays.

    `value` is an array, or a Python or NumPy scalar. `as_array` uploads masks and indices.
    """
    mask = _only_mask(key)
    if mask is not None:
        return _with_masked(x, mask, value, as_array)
    index = keys.read_index(with_counted(x, with_masks_read(key)), x._spec.shape)
    if index.gather is None:
        return _with_region(x, index, _in_region(value, x._spec.shape, index))
    return _with_indices(x, index, value, as_array, overwritten)


def with_combined_item(x: R, key: Any, value: Any, as_array: Callable[[Any], R], combination: Combination) -> R:
    """Returns the new value of `x` after all of `value` that go to an element of `x[key]` are combined with it.

    Raises DtypeError for values of a higher kind than the elements, as `x += v` does.
    """
    combination.check_kind(x, value)
    index = keys.read_index(with_counted(x, with_masks_read(key)), x._spec.shape)
    if index.gather is None:
        return with_item(x, key, combination.of(get_item(x, key, as_array), value), as_array)
    return _with_indices(x, index, value, as_array, combination.written)


def _with_indices(x: R, index: Index, value: Any, as_array: Callable[[Any], R], write: Write) -> R:
    assert index.gather is not None
    if any(axis in index.new_axes for axis in index.gather.axes):
        raise ArgumentError("an assignment takes a single boolean only if nothing stands beside it in the brackets")
    if index.region is None:
        return _with_gathered(x, index, value, as_array, write)
    part = region_of(x, index.region, index.starts)
    return _with_region(x, index, _with_gathered(part, index, value, as_array, write))


def _with_region(x: R, index: Index, value: Any) -> R:
    region = index.region or keys.whole(x._spec.shape)
    starts = index.starts or (0,) * len(region.axes)
    result: R = apply(BY_NAME["assign_slice"], (x, value), tuple(region), starts)
    return result


def _in_region(value: Any, shape: Shape, index: Index) -> Any:
    """Removes the axes of `value` that the region of `index` in an array of `shape` does not have."""
    if not isinstance(value, Recorded):
        return value
    if not index.new_axes:
        return _without_leading_ones(value, len(shape) - (len(index.region.dropped) if index.region else 0))
    value = _of_rank(value, index.selected(()))
    return reshape(value, [dim for axis, dim in enumerate(value._spec.shape) if axis not in index.new_axes])


def _with_gathered(part: R, index: Index, value: Any, as_array: Callable[[Any], R], write: Write) -> R:
    """Returns the new value of `part` after an assignment. `part` is the region of `index`, and `index` gathers."""
    gather = _without_new_axes(index)
    shape = part._spec.shape
    if isinstance(value, Recorded):
        value = _laid_out(value, index, gather, shape)
    if not prod(gather.shape):
        return part
    places = _places(gather, [shape[axis] for axis in gather.axes], as_array)
    written: R = write(join_axes(part, gather), gather.joined_axis, places, value, as_array)
    return part_axes(written, gather, shape)


def _places(gather: Gather, dims: Sequence[int], as_array: Callable[[Any], R]) -> Any:
    """Returns the places on the joined axis, counted from the front, in order: a vector here or on the server.

    `dims` are the lengths of the axes that are joined.
    """
    indices = joined_indices(gather, dims, as_array)
    if not isinstance(indices, Recorded):
        return np.broadcast_to(indices, gather.shape).reshape(-1)
    if len(gather.axes) == 1:
        indices = places_on_server(indices, dims[0], as_array)
    return reshape(indices, (prod(gather.shape),))


def _without_new_axes(index: Index) -> Gather:
    """Returns the gather of `index`, its axes counted without the new ones."""
    assert index.gather is not None
    axes = [axis - sum(new < axis for new in index.new_axes) for axis in index.gather.axes]
    return index.gather._replace(axes=tuple(axes))


def _laid_out(value: R, index: Index, gather: Gather, part: Shape) -> R:
    """Reshapes `value`, which broadcasts to what `index` selects, to broadcast to the region of shape `part`.

    The axes of `gather` are joined in that region. In `value` the axes of the indices become one, which moves to that
    axis, and the new axes of `index` go.
    """
    assert index.gather is not None
    value = _of_rank(value, index.selected(part))
    shape, first, count = value._spec.shape, index.gather.result_axis, len(gather.shape)
    if prod(shape[first : first + count]) != 1:
        value = broadcast_to(value, shape[:first] + gather.shape + shape[first + count :])
    joined = prod(value._spec.shape[first : first + count])
    others = [axis for axis in range(len(part) + len(index.new_axes)) if axis not in index.gather.axes]
    dims = [*shape[:first], *shape[first + count :]]
    ahead = [dim for dim, axis in zip(dims[:first], others[:first], strict=True) if axis not in index.new_axes]
    behind = [dim for dim, axis in zip(dims[first:], others[first:], strict=True) if axis not in index.new_axes]
    return _moved(reshape(value, [*ahead, joined, *behind]), len(ahead), gather.joined_axis)


def _moved(value: R, axis: int, to: int) -> R:
    """Returns `value` with one axis elsewhere among the others."""
    others = [each for each in range(len(value._spec.shape)) if each != axis]
    return value if axis == to else transpose(value, [*others[:to], axis, *others[to:]])


def _of_rank(value: R, target: Shape) -> R:
    """Reshapes `value` to the rank of `target`. Raises ShapeError if `value` does not broadcast to `target`."""
    value = _without_leading_ones(value, len(target))
    shape = value._spec.shape
    shapes.broadcast_to(shape, target)
    return value if len(shape) == len(target) else reshape(value, (1,) * (len(target) - len(shape)) + shape)


def _only_mask(key: Any) -> Any:
    """Returns `key` as an array of booleans, on this machine or on the server, or None if `key` is not one mask."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if isinstance(key, Recorded):
        return key if key._spec.dtype.is_boolean else None
    return keys.mask_of(key)


def _with_masked(x: R, mask: Any, value: Any, as_array: Callable[[Any], R]) -> R:
    """Returns the new value of `x` after an assignment under `mask`, which has the shape of the first axes of `x`."""
    shape, of_mask = x._spec.shape, mask._spec.shape if isinstance(mask, Recorded) else mask.shape
    keys.check_mask(of_mask, shape)
    if 0 in of_mask:  # selects nothing, also if it is shorter than the array
        return x
    behind = shape[len(of_mask) :]
    if isinstance(value, Recorded) and not _is_one_for_all(value, behind):
        return _with_each_masked(x, with_masks_read(mask), value, as_array)
    if isinstance(value, Recorded):
        value = _without_leading_ones(value, len(behind))
    return chosen(as_array(mask), value, x, behind=len(behind))


def _with_each_masked(x: R, mask: Host, value: Any, as_array: Callable[[Any], R]) -> R:
    """Returns the new value of `x` after an assignment of a value for each element that `mask` selects."""
    shape = x._spec.shape
    rows = reshape(x, (mask.size, *shape[mask.ndim :]))
    places = np.flatnonzero(mask)
    index = Index(None, (), None, Gather((0,), (places,), places.shape, comes_first=False))
    return reshape(_with_gathered(rows, index, value, as_array, overwritten), shape)


def _is_one_for_all(value: Recorded, shape: Shape) -> bool:
    """Returns whether `value` broadcasts to `shape`, the shape of each part of an array that a mask selects."""
    given = value._spec.shape
    surplus = max(len(given) - len(shape), 0)
    if prod(given[:surplus]) != 1:
        return False
    try:
        shapes.broadcast_to(given[surplus:], shape)
    except ShapeError:
        return False
    return True


def _without_leading_ones(value: Any, rank: int) -> Any:
    shape = value._spec.shape
    surplus = len(shape) - rank
    if surplus > 0 and all(dim == 1 for dim in shape[:surplus]):
        return reshape(value, shape[surplus:])
    return value
