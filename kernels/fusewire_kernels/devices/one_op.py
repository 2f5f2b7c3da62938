"""Turns a loaded plan of one op into a function of arrays, so that tier 0 can call the kernel of the plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.base import Device
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.shapes import Spec

_ALIGNMENT_BYTES = 16  # kernels load so many bytes at once


def as_function(
    device: Device,
    loaded: Any,
    slot_layout: SlotLayout,
    result: Spec,
    launch: Callable[[npt.NDArray[np.int64]], None] | None = None,
) -> Callable[..., Any]:
    """Implements `Device.as_function` by the other methods of `Device`.

    `launch` runs the plan for the only row of a slot table, if there is a faster way than `Device.launch`.
    """
    arena_address = device.arena_address(loaded.plan.arena_bytes, 0)
    table = np.zeros((1, len(loaded.plan.columns)), np.int64)
    table_row = table[0]
    launch_row = launch or partial(device.launch, loaded)
    library, address_of, empty = device.array_library, device.address, device.empty

    def as_in_block(operand: Any) -> Any:
        """Returns an array that lies as in a block of its own: in C order, from an aligned address."""
        is_in_order = isinstance(operand, library.ndarray) and operand.flags.c_contiguous
        array = operand if is_in_order else library.asarray(operand, order="C")
        return array if address_of(array) % _ALIGNMENT_BYTES == 0 else array.copy()

    def run(*operands: Any) -> Any:
        arrays = [*map(as_in_block, operands)]  # keeps copies alive until the launch is queued
        created = empty(result)
        slot_layout.fill(table_row, arena_address, [*map(address_of, arrays)], [address_of(created)], (), ())
        launch_row(table)
        return created

    return run
