"""Ops that move elements: joins, triangles, flips, padding."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.promotion import mask_of
from fusewire_torch.storage import array_of, is_ours
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("cat")
def _cat(tensors: Any, dim: int = 0) -> Array:
    """Joins tensors along an axis. PyTorch lets a tensor of shape (0,) stand for none of any shape."""
    dtype = tensors[0].dtype
    for each in tensors[1:]:
        dtype = torch.promote_types(dtype, each.dtype)
    joined = [array_of(each) for each in tensors if tuple(each.shape) != (0,)] or [array_of(tensors[0])]
    return fw.concat([each.astype(fusewire_of(dtype), copy=False) for each in joined], axis=dim)


@TABLE.value("tril")
def _tril(x: torch.Tensor, diagonal: int = 0) -> Array:
    return fw.tril(array_of(x), k=diagonal)


@TABLE.value("triu")
def _triu(x: torch.Tensor, diagonal: int = 0) -> Array:
    return fw.triu(array_of(x), k=diagonal)


@TABLE.value("flip")
def _flip(x: torch.Tensor, dims: Any) -> Array:
    return fw.flip(array_of(x), axis=tuple(dims)) if dims else array_of(x)


@TABLE.value("roll")
def _roll(x: torch.Tensor, shifts: Any, dims: Any = ()) -> Array:
    if len(shifts) != max(len(dims), 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    return fw.roll(array_of(x), tuple(shifts) if dims else shifts[0], axis=tuple(dims) or None)


@TABLE.value("repeat")
def _repeat(x: torch.Tensor, repeats: Any) -> Array:
    return fw.tile(array_of(x), tuple(repeats))


@TABLE.value("constant_pad_nd")
def _pad(x: torch.Tensor, pad: Any, value: Any = 0) -> Array:
    """Pads, or cuts where a width is negative. PyTorch gives the widths of the last axis first."""
    array = array_of(x)
    before, after = list(pad[::2]), list(pad[1::2])
    widths = [(0, 0)] * (x.dim() - len(before)) + [*zip(reversed(before), reversed(after), strict=True)]
    cut = tuple(
        slice(max(-low, 0), length - max(-high, 0)) for (low, high), length in zip(widths, x.shape, strict=True)
    )
    kept = array[cut] if any(low < 0 or high < 0 for low, high in widths) else array
    return fw.pad(kept, [(max(low, 0), max(high, 0)) for low, high in widths], constant_values=value)


@TABLE.value("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(x: torch.Tensor, mask: torch.Tensor, value: Any) -> Array:
    filling = array_of(value) if isinstance(value, torch.Tensor) and is_ours(value) else value
    if isinstance(filling, torch.Tensor):
        filling = filling.item()
    array = array_of(x)
    if isinstance(filling, Array):
        filling = filling.astype(array.dtype, copy=False)
    elif x.dtype is torch.bool:
        filling = bool(filling)
    elif not (x.dtype.is_floating_point or x.dtype.is_complex):
        filling = int(filling)
    return fw.where(mask_of(mask), filling, array)
