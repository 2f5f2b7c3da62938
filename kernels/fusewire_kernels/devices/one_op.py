"""Turns a loaded plan of one op into a function of arrays, so that tier 0 can call the kernel of the plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.base import Device
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.ops.shapes import Spec

_ALIGNMENT_BYTES = 16  # kernels load so many bytes at once


def as_function(
    device: Device,
    loaded: Any,
    slot_layout: SlotLayout,
    result: Spec,
    *,
    empty: Callable[[], Any] | None = None,
    launch: Callable[[npt.NDArray[np.int64]], None] | None = None,
) -> Callable[..., Any]:
    """Implements `Device.as_function` by the other methods of `Device`.

    `empty` makes the array for a result, and `launch` runs the plan for the only row of a slot table, if there is a
    faster way than by `Device`.
    """
    arena_address = device.arena_address(loaded.plan.arena_bytes, 0)
    table = np.zeros((1, len(loaded.plan.columns)), np.int64)
    table_row = table[0]
    new_result = empty or partial(device.empty, result)
    launch_row = launch or partial(device.launch, loaded)
    library, array_type, address_of = device.array_library, device.array_library.ndarray, device.address

    def run(*operands: Any) -> Any:
        arrays, addresses = [], []  # `arrays` keeps copies alive until the launch is queued
        for operand in operands:
            is_in_order = isinstance(operand, array_type) and operand.flags.c_contiguous
            array = operand if is_in_order else library.asarray(operand, order="C")
            address = address_of(array)
            if address % _ALIGNMENT_BYTES:
                array = array.copy()
                address = address_of(array)
            arrays.append(array)
            addresses.append(address)
        created = new_result()
        slot_layout.fill(table_row, arena_address, addresses, (address_of(created),), (), ())
        launch_row(table)
        return created

    return run
