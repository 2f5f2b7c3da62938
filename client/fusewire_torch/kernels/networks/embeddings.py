"""Rows of a table by their numbers."""

from __future__ import annotations

import torch

import fusewire as fw
from fusewire import Array
from fusewire._api.ops.segments import Segments
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.gathering import rows_at
from fusewire_torch.storage import array_of, write
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("embedding")
def _embedding(
    weight: torch.Tensor,
    indices: torch.Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    return rows_at(array_of(weight), array_of(indices))


@TABLE.kernel("embedding_renorm_")
def _embedding_renorm(weight: torch.Tensor, indices: torch.Tensor, max_norm: float, norm_type: float) -> torch.Tensor:
    """Shortens the rows that are asked for to `max_norm`. PyTorch adds 1e-7 to the length that it divides by."""
    table, places = array_of(weight), array_of(indices).reshape(-1)
    rows = rows_at(table, places)
    lengths = fw.linalg.vector_norm(rows, axis=-1, ord=norm_type, keepdims=True)
    shortened = fw.where(lengths > max_norm, rows * (max_norm / (lengths + 1e-7)), rows)
    return write(weight, table.at[places].set(shortened))


@TABLE.value("embedding_dense_backward")
def _embedding_backward(
    grad: torch.Tensor, indices: torch.Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    given, at = array_of(grad), array_of(indices)
    rows, places = given.reshape((-1, given.shape[-1])), at.reshape(-1)
    if scale_grad_by_freq:
        counts = fw.zeros((num_weights,), fusewire_of(grad.dtype), device=rows.session).at[places].add(1)
        rows = rows / fw.expand_dims(fw.take(counts, places), -1)
    if padding_idx >= 0:
        rows = rows * fw.expand_dims(places != padding_idx, -1).astype(rows.dtype)
    summed: Array = Segments(places, num_weights).reduced("segment_sum", rows, 0)
    return summed
