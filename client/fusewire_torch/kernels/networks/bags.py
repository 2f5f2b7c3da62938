"""Bags of rows of a table: their sum, mean or greatest elements, as `torch.nn.EmbeddingBag` has them."""

from __future__ import annotations

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()

_SUM, _MEAN, _MAX = 0, 1, 2  # how PyTorch numbers the modes


@TABLE.value("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Array, Array, Array, Array]:
    """Returns the bags, the bag of each index, how many rows each bag has, and the rows of the greatest elements."""
    table, places = array_of(weight), array_of(indices).reshape(-1)
    begins = array_of(offsets).astype("int64", copy=False)
    if include_last_offset:
        begins = begins[:-1]
    bags = begins.size
    count = fw.arange(places.size, device=table.session)
    bag = fw.searchsorted(begins, count, side="right") - 1
    is_counted = (places != padding_idx).astype(table.dtype)
    sizes = fw.zeros((bags,), table.dtype, device=table.session).at[bag].add(is_counted)
    rows = fw.take(table, places, axis=0)
    nothing = fw.zeros((bags, table.shape[1]), table.dtype, device=table.session)
    if mode == _MAX:
        found, greatest = _greatest(rows, places, bag, is_counted, nothing)
        return found, bag, sizes.astype("int64"), greatest
    factors = is_counted if per_sample_weights is None else is_counted * array_of(per_sample_weights).reshape(-1)
    found = nothing.at[bag].add(rows * fw.expand_dims(factors, -1))
    if mode == _MEAN:
        found = found / fw.expand_dims(fw.maximum(sizes, 1), -1)
    return found, bag, sizes.astype("int64"), fw.zeros((bags,), "int64", device=table.session)


def _greatest(rows: Array, places: Array, bag: Array, is_counted: Array, nothing: Array) -> tuple[Array, Array]:
    """Returns the greatest elements of each bag, and the row of the table in which each lies; -1 of an empty bag."""
    candidates = fw.where(fw.expand_dims(is_counted, -1) != 0, rows, -fw.inf).astype(rows.dtype)
    found = (nothing - fw.inf).at[bag].max(candidates)
    is_there = fw.logical_and(candidates == fw.take(found, bag, axis=0), fw.isfinite(candidates))
    numbers = fw.where(is_there, fw.expand_dims(places, -1), -1)
    greatest = fw.full(nothing.shape, -1, "int64", device=rows.session).at[bag].max(numbers)
    return fw.where(greatest < 0, 0, found).astype(rows.dtype), greatest


@TABLE.value("_embedding_bag_backward")
def _embedding_bag_backward(
    grad: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    offset2bag: torch.Tensor,
    bag_size: torch.Tensor,
    maximum_indices: torch.Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: torch.Tensor | None,
    padding_idx: int = -1,
) -> Array:
    given, places, bag = array_of(grad), array_of(indices).reshape(-1), array_of(offset2bag)
    nothing = fw.zeros((num_weights, given.shape[1]), given.dtype, device=given.session)
    if mode == _MAX:
        greatest = array_of(maximum_indices)
        columns = fw.arange(given.shape[1], device=given.session)
        return nothing.at[fw.maximum(greatest, 0), columns].add(given * (greatest >= 0).astype(given.dtype))
    factors = (places != padding_idx).astype(given.dtype)
    if per_sample_weights is not None:
        factors = factors * array_of(per_sample_weights).reshape(-1)
    if mode == _MEAN:
        factors = factors / fw.take(fw.maximum(array_of(bag_size), 1), bag).astype(given.dtype)
    if scale_grad_by_freq:
        counts = fw.zeros((num_weights,), given.dtype, device=given.session).at[places].add(1)
        factors = factors / fw.take(counts, places)
    return nothing.at[places].add(fw.take(given, bag, axis=0) * fw.expand_dims(factors, -1))


@TABLE.value("_embedding_bag_per_sample_weights_backward")
def _embedding_bag_weights_backward(
    grad: torch.Tensor,
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    offset2bag: torch.Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Array:
    places = array_of(indices).reshape(-1)
    rows = fw.take(array_of(grad), array_of(offset2bag), axis=0) * fw.take(array_of(weight), places, axis=0)
    return fw.sum(rows, axis=1) * (places != padding_idx).astype(rows.dtype)
