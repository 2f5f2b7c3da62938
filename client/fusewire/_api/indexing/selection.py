"""Records `x[key]` as ops that select elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fusewire._api.indexing import keys
from fusewire._api.indexing.counted_key import with_counted
from fusewire._api.indexing.gathers import join_axes, joined_indices
from fusewire._api.ops.operations import axis_of, reshape, take, take_places, transpose
from fusewire._conversions import Host
from fusewire._errors import RequestError
from fusewire._recording.record_op import Recorded, apply_to_one
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Region

R = TypeVar("R", bound=Recorded)


def get_item(x: R, key: Any, as_array: Callable[[Any], R]) -> R:
    """Records `x[key]`. `as_array` uploads indices, unless they already are an array of the session.

    Waits for the values of masks on the server, because the shape of the result depends on them.
    """
    key = with_counted(x, with_masks_read(key))
    index = keys.read_index(key, x._spec.shape)
    if index.region is None and index.gather is None and index.new_shape is None:
        index = index._replace(new_shape=x._spec.shape)  # all of `x`, but a value of its own
    if index.region is not None:
        x = region_of(x, index.region, index.starts)
    if index.new_shape is not None:
        x = reshape(x, index.new_shape)
    return x if index.gather is None else _gather(x, index.gather, as_array)


def take_any(x: R, indices: Any, axis: int, as_array: Callable[[Any], R]) -> R:
    """Returns the elements at `indices`, which are on the server or on this machine. Here they must lie in the axis."""
    if isinstance(indices, Recorded):
        return take(x, as_array(indices), axis)
    shape = x._spec.shape
    axis = axis_of(axis, len(shape))
    return take_places(x, as_array(keys.places_of(indices, axis, shape)), axis)


def with_masks_read(key: Any) -> Any:
    """Returns a key with masks of this machine in place of those on the server, for which it waits.

    Raises RequestError in the body of a loop or function, where no value is known.
    """
    if isinstance(key, tuple):
        return tuple(map(with_masks_read, key))
    if not (isinstance(key, Recorded) and key._spec.dtype.is_boolean):
        return key
    if key._recorder.owner.recorder().is_in_body:
        raise RequestError(
            "the number of elements that a mask selects is not known in the body of a loop or function; use where"
        )
    mask: Host = key._recorder.owner.read(key, None)
    return mask


def _gather(x: R, gather: keys.Gather, as_array: Callable[[Any], R]) -> R:
    shape = x._spec.shape
    given = joined_indices(gather, [shape[axis] for axis in gather.axes], as_array)
    indices = as_array(given)
    is_checked = indices is not given or len(gather.axes) > 1
    axis = gather.joined_axis
    gathered = (take_places if is_checked else take)(join_axes(x, gather), indices, axis)
    if gather.result_axis == axis:
        return gathered
    axes = list(range(len(gathered._spec.shape)))
    end = axis + len(gather.shape)
    return transpose(gathered, [*axes[axis:end], *axes[:axis], *axes[end:]])


def region_of(x: R, region: Region, starts: Sequence[int]) -> R:
    return apply_to_one(BY_NAME["slice"], x, tuple(region), starts)
