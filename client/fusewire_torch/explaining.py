"""Explains the work that made a tensor, by that of the array under it."""

from __future__ import annotations

import torch

import fusewire as fw
from fusewire_torch.storage import DEVICE, held

_EMPTY = "the tensor was made without elements, and nothing has been written to it"


def explain(tensor: torch.Tensor, *, timeout: float | None = None) -> fw.Explanation:
    """Explains the work that made a tensor on the device, as `fusewire.explain` does for an array.

    A view has the explanation of the tensor that it shows. `session().explain()` explains all programs used last.
    Raises ArgumentError for a tensor elsewhere, and WaitTimeout after `timeout` seconds.
    """
    if not isinstance(tensor, torch.Tensor) or tensor.device.type != DEVICE:
        where = f"a tensor on {tensor.device}" if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        raise fw.ArgumentError(f'explain takes a tensor on the device "{DEVICE}", not {where}')
    array = held(tensor.untyped_storage()).array
    return fw.Explanation(notes=(_EMPTY,)) if array is None else fw.explain(array, timeout=timeout)
