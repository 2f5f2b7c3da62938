"""Copies between devices and dtypes, and reads. Only reads wait."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire._api.ops.filled import filled
from fusewire_torch.connection import session
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.storage import array_of, is_ours, note_transfer, write
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.kernel("_copy_from")
def _copy(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copies between two devices, of which at least one is ours. Casts to the target's dtype."""
    if not is_ours(target):
        target.copy_(_read(source))
        return target
    array = array_of(source) if is_ours(source) else uploaded(source, target.dtype)
    shape = tuple(target.shape)
    return write(target, array if array.shape == shape else fw.broadcast_to(array, shape))


@TABLE.kernel("_copy_from_and_resize")
def _copy_and_resize(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    target.resize_(source.shape)
    return _copy(source, target)


@TABLE.kernel("_local_scalar_dense")
def _number(x: torch.Tensor) -> Any:
    note_transfer("reads a value")
    return array_of(x).item()


def uploaded(source: torch.Tensor, dtype: torch.dtype) -> Array:
    """Returns the elements of a tensor of another device as an array of `dtype`."""
    if not source.numel():
        return filled(session(), tuple(source.size()), 0, fusewire_of(dtype))
    note_transfer(f"uploads a tensor of the device {source.device}")
    wanted = fusewire_of(dtype)
    there = source.detach().to("cpu", dtype).resolve_conj().resolve_neg().contiguous()
    if dtype is torch.bfloat16:  # NumPy has none of its own
        return session().array(there.view(torch.int16).numpy().view(wanted.dtype), wanted)
    return session().array(there.numpy(), wanted)


def _read(source: torch.Tensor) -> torch.Tensor:
    """Waits for the elements, and returns them as a tensor of the CPU."""
    note_transfer("reads a value")
    value = array_of(source).numpy()
    if source.dtype is torch.bfloat16:
        return torch.from_numpy(value.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(value)


@TABLE.value("clone")
def _clone(x: torch.Tensor, *, memory_format: Any = None) -> Array:
    return array_of(x)
