"""Ops that order elements: sorted ones, greatest ones, ranks, unique ones."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.kernels.arrangement.indexing import at_least_vector
from fusewire_torch.promotion import number_of
from fusewire_torch.storage import DEVICE, array_of, is_ours, write
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("sort", "sort.stable")
def _sort(x: torch.Tensor, *arguments: Any, **options: Any) -> tuple[Array, Array]:
    dim, descending = _sort_options(arguments, options)
    array = array_of(x)
    if not x.dim():
        return array, fw.zeros_like(array, dtype="int64")
    order = fw.argsort(array, axis=dim, descending=descending, stable=True)
    return fw.take_along_axis(array, order, axis=dim), order


def _sort_options(arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, bool]:
    """Returns dim and descending, which are positional in one overload and named in the other."""
    given: list[Any] = [*arguments, *(-1, False)[len(arguments) :]]
    dim, descending = given
    return options.get("dim", dim), options.get("descending", descending)


@TABLE.value("topk")
def _topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    array = array_of(x)
    if not x.dim():
        return array, fw.zeros_like(array, dtype="int64")
    values, places = fw.topk(array, k, axis=dim, largest=largest)
    return values, places


@TABLE.value("kthvalue")
def _kth(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    return _picked(x, dim, keepdim, lambda ordered: k - 1)


@TABLE.value("median.dim")
def _median_along(x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """Returns the lower of the two elements in the middle. NaN is greater than numbers, but wins as a median."""

    def middle(ordered: Array) -> Any:
        length = ordered.shape[-1]
        if not ordered.dtype.is_floating:
            return (length - 1) // 2
        has_nan = fw.isnan(ordered[..., -1:])
        numbers = length - fw.sum(fw.isnan(ordered), axis=-1, keepdims=True)
        return fw.where(has_nan, numbers, (length - 1) // 2)

    return _picked(x, dim, keepdim, middle)


@TABLE.value("nanmedian.dim")
def _nanmedian_along(x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    def middle(ordered: Array) -> Any:
        length = ordered.shape[-1]
        if not ordered.dtype.is_floating:
            return (length - 1) // 2
        numbers = length - fw.sum(fw.isnan(ordered), axis=-1, keepdims=True)
        return fw.maximum(numbers - 1, 0) // 2

    return _picked(x, dim, keepdim, middle)


def _picked(x: torch.Tensor, dim: int, keepdim: bool, place: Any) -> tuple[Array, Array]:
    """Returns one element of each row along an axis, and its index, by its place among the ordered ones."""
    array = array_of(x)
    if not x.dim():
        return array, fw.zeros_like(array, dtype="int64")
    rows = fw.moveaxis(array, dim, -1)
    order = fw.argsort(rows, axis=-1, stable=True)
    ordered = fw.take_along_axis(rows, order, axis=-1)
    at = place(ordered)
    if isinstance(at, int):
        value, index = ordered[..., at : at + 1], order[..., at : at + 1]
    else:
        value, index = fw.take_along_axis(ordered, at, axis=-1), fw.take_along_axis(order, at, axis=-1)
    if keepdim:
        return fw.moveaxis(value, -1, dim), fw.moveaxis(index, -1, dim)
    return fw.squeeze(value, -1), fw.squeeze(index, -1)


@TABLE.value("median")
def _median(x: torch.Tensor) -> Array:
    return _median_along(x.reshape(-1), 0)[0] if x.numel() else fw.full((), fw.nan, fusewire_of(x.dtype))


@TABLE.value("nanmedian")
def _nanmedian(x: torch.Tensor) -> Array:
    return _nanmedian_along(x.reshape(-1), 0)[0] if x.numel() else fw.full((), fw.nan, fusewire_of(x.dtype))


@TABLE.value("mode")
def _mode(x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """Returns the most frequent element of each row, the least of several, and the last index where it lies."""
    array = array_of(x)
    if not x.dim():
        return array, fw.zeros_like(array, dtype="int64")
    rows = fw.moveaxis(array, dim, -1)
    order = fw.argsort(rows, axis=-1, stable=True)
    ordered = fw.take_along_axis(rows, order, axis=-1)
    counts = fw.sum(fw.expand_dims(ordered, -1) == fw.expand_dims(ordered, -2), axis=-1)
    first = fw.argmax(counts, axis=-1, keepdims=True)
    last = first + fw.take_along_axis(counts, first, axis=-1) - 1
    value, index = fw.take_along_axis(ordered, last, axis=-1), fw.take_along_axis(order, last, axis=-1)
    if keepdim:
        return fw.moveaxis(value, -1, dim), fw.moveaxis(index, -1, dim)
    return fw.squeeze(value, -1), fw.squeeze(index, -1)


@TABLE.kernel("_cummax_helper")
def _cummax(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, dim: int) -> None:
    _cumulative_extreme(x, values, indices, dim, fw.cumulative_max)


@TABLE.kernel("_cummin_helper")
def _cummin(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, dim: int) -> None:
    _cumulative_extreme(x, values, indices, dim, fw.cumulative_min)


def _cumulative_extreme(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, dim: int, scan: Any) -> None:
    """Writes the greatest or least of the first elements, and the last index where it lies."""
    array = array_of(x)
    found = scan(array.astype("uint8") if x.dtype is torch.bool else array, axis=dim)
    is_there = array.astype(found.dtype, copy=False) == found
    if x.dtype.is_floating_point:
        is_there = fw.logical_or(is_there, fw.isnan(array))
    length = x.shape[dim]
    numbers = fw.arange(length, device=array.session).reshape((length,) + (1,) * (x.dim() - 1 - dim % x.dim()))
    places = fw.cumulative_max(fw.where(is_there, numbers, 0), axis=dim)
    write(values, found)
    write(indices, places)


@TABLE.value("_logcumsumexp")
def _logcumsumexp(x: torch.Tensor, dim: int) -> Array:
    """Returns the logarithms of sums of exponentials of the first elements, relative to the greatest of all."""
    array = array_of(x)
    if not x.dim() or not x.numel():
        return array
    greatest = fw.max(array, axis=dim, keepdims=True)
    base = fw.where(fw.isfinite(greatest), greatest, 0).astype(array.dtype)
    return fw.log(fw.cumulative_sum(fw.exp(array - base), axis=dim)) + base


@TABLE.value("searchsorted.Tensor")
def _searchsorted(
    sorted_sequence: torch.Tensor,
    x: torch.Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> Array:
    """Returns the places in the last axis of sorted rows. Of many short rows it counts the elements ahead."""
    ordered, values = array_of(sorted_sequence), array_of(x)
    if sorter is not None:
        ordered = fw.take_along_axis(ordered, array_of(sorter), axis=-1)
    is_right = right or side == "right"
    if ordered.ndim == 1:
        found = fw.searchsorted(ordered, values, side="right" if is_right else "left")
    else:
        rows, wanted = fw.expand_dims(ordered, -2), fw.expand_dims(values, -1)
        found = fw.sum(rows <= wanted if is_right else rows < wanted, axis=-1)
    return found.astype("int32" if out_int32 else "int64", copy=False)


@TABLE.value("searchsorted.Scalar")
def _searchsorted_number(sorted_sequence: torch.Tensor, x: Any, **options: Any) -> Array:
    dtype = sorted_sequence.dtype
    return _searchsorted(sorted_sequence, torch.full((), number_of(x), dtype=dtype, device=DEVICE), **options)


@TABLE.value("bucketize.Tensor")
def _bucketize(x: torch.Tensor, boundaries: torch.Tensor, *, out_int32: bool = False, right: bool = False) -> Array:
    if boundaries.dim() != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return _searchsorted(boundaries, x, out_int32=out_int32, right=right)


@TABLE.value("_unique")
def _unique(x: torch.Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Array, Array]:
    values, inverse, _ = _unique_2(x, sorted, return_inverse)
    return values, inverse


@TABLE.value("_unique2")
def _unique_2(
    x: torch.Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Array, Array, Array]:
    """Waits: the shape of the result depends on the elements."""
    found = fw.unique_all(array_of(x).reshape(-1))
    nothing = fw.zeros((0,), "int64", device=found.values.session)
    inverse = found.inverse_indices.reshape(tuple(x.shape)) if return_inverse or return_counts else nothing
    return found.values, inverse, found.counts if return_counts else nothing


@TABLE.value("unique_dim")
def _unique_dim(
    x: torch.Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Array, Array, Array]:
    """Waits: the shape of the result depends on the elements."""
    values, inverse, counts = fw.unique(array_of(x), return_inverse=True, return_counts=True, axis=dim)
    return values, inverse, counts


@TABLE.value("unique_consecutive")
def _unique_consecutive(
    x: torch.Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Array, Array, Array]:
    """Waits: the shape of the result depends on the elements."""
    array = array_of(x).reshape(-1) if dim is None else fw.moveaxis(at_least_vector(array_of(x)), dim, 0)
    nothing = fw.zeros((0,), "int64", device=array.session)
    length = array.shape[0]
    if not array.size:
        return array if dim is None else array_of(x), nothing, nothing
    is_new = fw.any((array[1:] != array[:-1]).reshape((length - 1, array.size // length)), axis=1)
    is_first = fw.concat([fw.ones((1,), "bool", device=array.session), is_new])
    places = fw.nonzero(is_first)[0]
    values = fw.take(array, places, axis=0)
    inverse, counts = nothing, nothing
    if return_inverse:
        numbers = fw.cumulative_sum(is_first.astype("int64"), axis=0) - 1
        inverse = numbers.reshape(tuple(x.shape)) if dim is None else numbers
    if return_counts:
        counts = fw.concat([places[1:], fw.full((1,), length, "int64", device=array.session)]) - places
    return (values if dim is None else fw.moveaxis(values, 0, dim)), inverse, counts


@TABLE.value("bincount")
def _bincount(x: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> Array:
    """Waits: the length of the result is one more than the greatest element."""
    return fw.bincount(array_of(x), None if weights is None else array_of(weights), minlength)


@TABLE.value("histc")
def _histc(x: torch.Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Array:
    """Returns how many elements lie in each of equal parts from `min` to `max`, or of all elements if both are 0."""
    array = array_of(x).reshape(-1)
    low: Any = float(min)
    high: Any = float(max)
    if low == high and x.numel():
        low, high = fw.min(array), fw.max(array)
        is_one = (low == high).astype(array.dtype)
        low, high = low - is_one, high + is_one
    place = fw.floor((array - low) / (high - low) * bins)
    is_counted = fw.logical_and(array >= low, array <= high)
    place = fw.where(is_counted, fw.clip(place, 0, bins - 1), 0).astype("int64")
    return fw.zeros((bins,), array.dtype, device=array.session).at[place].add(is_counted.astype(array.dtype))


@TABLE.kernel("equal")
def _equal(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Waits."""
    if x.shape != y.shape:
        return False
    return bool(fw.all(array_of(x) == array_of(y)).item()) if is_ours(x) and is_ours(y) else False


@TABLE.value("nonzero_static")
def _nonzero_static(x: torch.Tensor, *, size: int, fill_value: int = -1) -> Array:
    """Returns the places of the first elements that are not zero, as many as `size`, without a wait."""
    array = array_of(x).reshape(-1) != 0
    numbers = fw.arange(array.size, device=array.session)
    target = fw.where(array, fw.cumulative_sum(array.astype("int64"), axis=0) - 1, size)
    target = fw.minimum(target, size)
    places = fw.zeros((size + 1,), "int64", device=array.session).at[target].set(numbers)[:size]
    is_found = fw.arange(size, device=array.session) < fw.sum(array.astype("int64"))
    columns, step = [], array.size
    for length in x.shape:
        step //= max(length, 1)
        columns.append(fw.where(is_found, places // step % length, fill_value))
    return fw.stack(columns, axis=1) if columns else fw.zeros((size, 0), "int64", device=array.session)
