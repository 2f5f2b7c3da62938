"""Launches one iteration of a plan, with the slots of each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.base import Device, LoadedPlan


class RowSlots(NamedTuple):
    """What a row of a slot table says, besides its arena."""

    inputs: Sequence[int]
    outputs: Sequence[int]
    scalars: Sequence[int | float] = ()
    starts: Sequence[int] = ()


def launch_rows(device: Device, loaded: LoadedPlan, rows: Sequence[RowSlots]) -> None:
    """Fills the slots of some rows and launches them."""
    table = np.zeros((len(rows), loaded.slot_layout.columns), np.int64)
    for number, row in enumerate(rows):
        loaded.slot_layout.fill(table, number, device.arena_address(loaded.plan.arena_bytes, number), *row)
    launch_slots(device, loaded, table)


def launch_slots(device: Device, loaded: LoadedPlan, slots: npt.ArrayLike) -> None:
    """Launches rows whose slots are given, [rows][columns]."""
    table = np.array(slots, np.int64)
    device.launch(loaded, table[np.newaxis], (1,) * len(table))
