"""Turns a loaded plan of one op into a function of arrays, so that tier 0 can call the kernel of the plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fusewire_kernels.devices.base import Device
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.shapes import Spec


def as_function(device: Device, loaded: Any, slot_layout: SlotLayout, result: Spec) -> Callable[..., Any]:
    """Implements `Device.as_function` by the other methods of `Device`."""
    arena_address = device.arena_address(loaded.plan.arena_bytes, 0)
    table = np.zeros((1, len(loaded.plan.columns)), np.int64)
    table_row = table[0]
    dense = partial(device.array_library.asarray, order="C")

    def run(*operands: Any) -> Any:
        arrays = [*map(dense, operands)]  # keeps dense copies alive until the launch is queued
        created = device.empty(result)
        slot_layout.fill(table_row, arena_address, [*map(device.address, arrays)], [device.address(created)], (), ())
        device.launch(loaded, table)
        return created

    return run
