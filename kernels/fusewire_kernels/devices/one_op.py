"""Turns a loaded plan of one op into a function of arrays, so that tier 0 can call the kernel of the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusewire_kernels.devices.base import Device
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.shapes import Spec

_ALIGNMENT_BYTES = 16  # kernels load so many bytes at once


def as_function(device: Device, loaded: Any, slot_layout: SlotLayout, result: Spec) -> Callable[..., Any]:
    """Implements `Device.as_function` by the other methods of `Device`."""
    arena_address = device.arena_address(loaded.plan.arena_bytes, 0)
    table = np.zeros((1, len(loaded.plan.columns)), np.int64)
    table_row = table[0]

    def as_in_block(operand: Any) -> Any:
        """Returns an array that lies as in a block of its own: in C order, from an aligned address."""
        array = device.array_library.asarray(operand, order="C")
        return array if device.address(array) % _ALIGNMENT_BYTES == 0 else array.copy()

    def run(*operands: Any) -> Any:
        arrays = [*map(as_in_block, operands)]  # keeps copies alive until the launch is queued
        created = device.empty(result)
        slot_layout.fill(table_row, arena_address, [*map(device.address, arrays)], [device.address(created)], (), ())
        device.launch(loaded, table)
        return created

    return run
