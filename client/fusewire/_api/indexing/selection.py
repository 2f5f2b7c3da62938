"""Records `x[key]` as ops that select elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fusewire._api.indexing import keys
from fusewire._api.indexing.counted_key import with_counted
from fusewire._api.indexing.keys import Index
from fusewire._api.operations import axis_of, reshape, take, take_places, transpose
from fusewire._recording.implementation import name_of_key
from fusewire._recording.op_rules import learn_item
from fusewire._recording.record_op import Recorded, apply_to_one
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Region

R = TypeVar("R", bound=Recorded)


def get_item(x: R, key: Any, as_array: Callable[[Any], R]) -> R:
    """Records `x[key]`, and keeps the meaning of the key for `record_item`, which is tried before.

    `as_array` uploads indices, unless they already are an array of the session.
    """
    key = with_counted(x, key)
    index = keys.read_index(key, x._spec.shape)
    if index.region is None and index.gather is None and index.new_shape is None:
        index = index._replace(new_shape=x._spec.shape)  # all of `x`, but a value of its own
    _keep(x, key, index)
    if index.region is not None:
        x = region_of(x, index.region, index.starts)
    if index.new_shape is not None:
        x = reshape(x, index.new_shape)
    return x if index.gather is None else _gather(x, index.gather, as_array)


def _keep(x: Recorded, key: Any, index: Index) -> None:
    """Keeps the meaning of a key if it is one op."""
    name = name_of_key(key)
    if name is None or index.gather is not None:
        return
    if index.region is None and index.new_shape is not None:
        learn_item(x._spec, name, BY_NAME["reshape"], (index.new_shape,), ())
    if index.region is not None and index.new_shape is None:
        learn_item(x._spec, name, BY_NAME["slice"], tuple(index.region), index.starts)


def take_any(x: R, indices: Any, axis: int, as_array: Callable[[Any], R]) -> R:
    """Returns the elements at `indices`, which are on the server or on this machine. Here they must lie in the axis."""
    if isinstance(indices, Recorded):
        return take(x, as_array(indices), axis)
    shape = x._spec.shape
    axis = axis_of(axis, len(shape))
    return take_places(x, as_array(keys.places_of(indices, axis, shape)), axis)


def _gather(x: R, gather: keys.Gather, as_array: Callable[[Any], R]) -> R:
    indices = as_array(gather.indices)
    gathered = (take if indices is gather.indices else take_places)(x, indices, gather.axis)
    if not gather.comes_first:
        return gathered
    axes = list(range(len(gathered._spec.shape)))
    end = gather.axis + len(indices._spec.shape)
    return transpose(gathered, [*axes[gather.axis : end], *axes[: gather.axis], *axes[end:]])


def region_of(x: R, region: Region, starts: Sequence[int]) -> R:
    return apply_to_one(BY_NAME["slice"], x, tuple(region), starts)
