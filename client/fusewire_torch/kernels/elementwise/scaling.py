"""What `torch.amp.GradScaler` calls: gradients divided by a scale, and the scale that grows until one overflows."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire_torch.storage import array_of, write
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.kernel("_amp_foreach_non_finite_check_and_unscale_")
def _unscale(tensors: Any, found_inf: torch.Tensor, inv_scale: torch.Tensor) -> None:
    """Multiplies all tensors, and makes `found_inf` one if an element of them is not finite."""
    found, factor = array_of(found_inf), array_of(inv_scale)
    for tensor in tensors:
        array = array_of(tensor)
        is_bad = fw.logical_not(fw.all(fw.isfinite(array)))
        found = fw.maximum(found, is_bad.astype(found.dtype))
        write(tensor, array * factor.astype(array.dtype, copy=False))
    write(found_inf, found)


@TABLE.kernel("_amp_update_scale_")
def _update_scale(
    scale: torch.Tensor,
    growth_tracker: torch.Tensor,
    found_inf: torch.Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> torch.Tensor:
    """Lowers the scale after an overflow, and raises it after `growth_interval` steps without one."""
    now, is_bad = array_of(scale), array_of(found_inf) != 0
    steps = fw.where(is_bad, 0, array_of(growth_tracker) + 1)
    is_due = steps == growth_interval
    raised = fw.where(is_due, now * scale_growth_factor, now)
    raised = fw.where(fw.isfinite(raised), raised, now)
    write(growth_tracker, fw.where(is_due, 0, steps))
    return write(scale, fw.where(is_bad, now * scale_backoff_factor, raised))
