"""Elements written to places, and combined there: reductions by index, masks, repeats."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.kernels.arrangement.indexing import at_least_vector, keys_along
from fusewire_torch.promotion import mask_of
from fusewire_torch.storage import array_of, write
from fusewire_torch.table import Table

TABLE = Table()

# The method of `x.at[key]` of each reduction, and the value that changes nothing.
_METHODS = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "max", "amin": "min"}


@TABLE.value("scatter_reduce.two")
def _scatter_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *, include_self: bool = True
) -> Array:
    places = at_least_vector(array_of(index))
    if not places.size:
        return array_of(x)
    given = at_least_vector(array_of(source))[tuple(slice(length) for length in places.shape)]
    key = keys_along(places, dim)
    return _combined(at_least_vector(array_of(x)), key, given, reduce, include_self).reshape(tuple(x.shape))


@TABLE.value("index_reduce")
def _index_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *, include_self: bool = True
) -> Array:
    key = (slice(None),) * (dim % max(x.dim(), 1)) + (array_of(index).reshape(-1),)
    given = array_of(source) if x.dim() else array_of(source).reshape(-1)
    return _combined(at_least_vector(array_of(x)), key, given, reduce, include_self).reshape(tuple(x.shape))


def _combined(array: Array, key: Any, given: Array, reduce: str, include_self: bool) -> Array:
    method = _METHODS[reduce]
    started = array if include_self else array.at[key].set(_neutral(array, reduce))
    result: Array = getattr(started.at[key], method)(given)
    if reduce != "mean":
        return result
    counts = fw.full(array.shape, int(include_self), array.dtype, device=array.session).at[key].add(1)
    divisor = fw.maximum(counts, 1)
    return result / divisor if array.dtype.is_floating else fw.floor_divide(result, divisor)


def _neutral(array: Array, reduce: str) -> Any:
    """Returns the value that changes nothing in a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if array.dtype.is_floating:
        return -fw.inf if reduce == "amax" else fw.inf
    if array.dtype.name == "bool":
        return reduce == "amin"
    limits = fw.iinfo(array.dtype)
    return limits.min if reduce == "amax" else limits.max


@TABLE.value("masked_scatter")
def _masked_scatter(x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> Array:
    """Puts the first elements of the source, in their order, where the mask is true."""
    array, chosen = fw.broadcast_arrays(array_of(x), mask_of(mask))
    elements = array_of(source).reshape(-1)
    if not elements.size:
        return array
    flags = chosen.reshape(-1)
    numbers = fw.maximum(fw.cumulative_sum(flags.astype("int64"), axis=0) - 1, 0)
    taken = fw.take(elements, fw.minimum(numbers, elements.size - 1)).reshape(array.shape)
    return fw.where(chosen, taken, array)


@TABLE.kernel("masked_scatter_")
def _masked_scatter_in_place(x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return write(x, _masked_scatter(x, mask, source))


@TABLE.kernel("put_")
def _put(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
    if not index.numel():
        return x
    flat = array_of(x).reshape(-1)
    elements = flat.at[array_of(index).reshape(-1)]
    given = array_of(source).reshape(-1)
    changed = elements.add(given) if accumulate else elements.set(given)
    return write(x, changed.reshape(tuple(x.shape)))


@TABLE.value("take")
def _take(x: torch.Tensor, index: torch.Tensor) -> Array:
    return fw.take(array_of(x).reshape(-1), array_of(index))


@TABLE.value("repeat_interleave.Tensor")
def _repeated_numbers(repeats: torch.Tensor, *, output_size: int | None = None) -> Array:
    """Returns each place of `repeats` as often as its element says. Waits unless `output_size` is given."""
    counts = array_of(repeats)
    numbers = fw.arange(counts.size, device=counts.session)
    if output_size is None:
        return fw.repeat(numbers, counts)
    ends = fw.cumulative_sum(counts.astype("int64"), axis=0)
    return fw.searchsorted(ends, fw.arange(output_size, device=counts.session), side="right")
