"""Tier 0: running a row op by op, so that a new program starts at once.

The array library computes where its bits are ours. Every other op runs as the plan of a program of that one op,
which the planner prepares (and the disk cache keeps); until those plans are there the row waits. Where nothing can be
compiled the array library's twin stands in for them, for the process's whole life.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from fusewire_kernels.slots import SlotLayout

from fusewire_kernels import interpreter
from fusewire_kernels.devices.base import Device, LoadedPlan
from fusewire_kernels.reference import twin
from fusewire_protos.catalogue import Attributes, Op
from fusewire_protos.shapes import Spec
from fusewire_server.calls import OneOpCall
from fusewire_server.work import Row


class _OneOp(NamedTuple):
    loaded: LoadedPlan
    layout: SlotLayout
    result: Spec


class OneOps:
    """The one-op plans at hand. The loop thread adds; the device thread runs."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._plans: dict[OneOpCall, _OneOp] = {}

    def __contains__(self, call: OneOpCall) -> bool:
        return call in self._plans

    def add(self, call: OneOpCall, loaded: LoadedPlan) -> None:
        self._plans[call] = _OneOp(loaded, SlotLayout(loaded.plan), call.result())

    def run(self, op: Op, operands: Sequence[Spec], attributes: Attributes, arrays: Sequence[Any]) -> Any:
        """The op's result as a new array. Device thread."""
        one_op = self._plans.get(OneOpCall(op, tuple(operands), attributes))
        if one_op is None:  # the planner refused it
            return twin(op)(self._device.array_library, arrays, attributes, ())
        result = self._device.empty(one_op.result)
        plan = one_op.loaded.plan
        table = np.zeros((1, len(plan.columns)), np.int64)
        arena_address = self._device.arena_address(plan.arena_bytes, 0)
        addresses = [self._device.address(array) for array in arrays]
        one_op.layout.fill(table[0], arena_address, addresses, [self._device.address(result)], (), ())
        self._device.launch(one_op.loaded, table)
        return result


def run_op_by_op(device: Device, one_ops: OneOps, row: Row) -> None:
    """Runs a row whose buffers are allocated. Device thread."""
    program = row.entry.program
    library = device.array_library
    inputs = [device.array(value.block, spec) for value, spec in zip(row.inputs, program.inputs, strict=True)]
    run_inexact = one_ops.run if device.info.dialect is not None else None
    results = interpreter.run(program, library, inputs, row.scalars, row.starts, run_inexact)
    for value, index, result in zip(row.outputs, program.live, results, strict=True):
        device.array(value.block, program.result_spec(index))[...] = result
