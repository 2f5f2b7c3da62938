"""Allocates the memory of a submission's rows before the first launch. Device thread."""

from __future__ import annotations

import numpy as np

from fusewire_kernels.devices.base import Block, Device
from fusewire_protos.errors import OutOfMemory
from fusewire_server.device.memory.device_memory import DeviceMemory
from fusewire_server.device.orders import FailedRow, Submission
from fusewire_server.sessions.session import Row, Value, ValueState

NO_INPUT = "the device had no memory for an input"


class Allocation:
    """Allocates the blocks of rows' results."""

    def __init__(self, device: Device, memory: DeviceMemory) -> None:
        self._device = device
        self._memory = memory

    def allocate(self, submission: Submission) -> tuple[list[Row], list[FailedRow], list[Block]]:
        """Returns the rows to run, the rows for which there is no memory, and the blocks to release once all rows have
        run.
        """
        rows: list[Row] = []
        failed: list[FailedRow] = []
        spare: list[Block] = []  # at most one block: the zeros that replace failed inputs
        for (row, span), donated in zip(submission.spans.items(), submission.donated, strict=True):
            try:
                if span.start > 0:
                    self._go_on_with(row, spare, submission)
                else:
                    self._allocate_row(row, donated, spare, submission)
                rows.append(row)
            except OutOfMemory as error:
                self._memory.release(tuple(row.outputs))  # of a loop, which got them when its first iterations ran
                failed.append(FailedRow(row, "out_of_memory", str(error)))
        return rows, failed, spare

    def _allocate_row(
        self, row: Row, donated: tuple[tuple[int, int], ...], spare: list[Block], submission: Submission
    ) -> None:
        donor_of = {position: row.inputs[number] for number, position in donated}
        fresh: list[Value] = []
        try:
            for position, value in enumerate(row.outputs):
                if position not in donor_of:
                    value.block = self._memory.allocate(value.size_bytes, value.share)
                    fresh.append(value)
            for value in row.inputs:
                if value.block is None:
                    self._replace(value, spare, submission)
        except OutOfMemory:
            self._memory.release((*fresh, *donor_of.values()))
            raise
        for position, donor in donor_of.items():
            self._memory.donate(donor, row.outputs[position])

    def _go_on_with(self, row: Row, spare: list[Block], submission: Submission) -> None:
        """Checks that a row got its memory when its first iterations ran. Raises OutOfMemory if it did not."""
        if submission.loaded is not None and row.failed_ops:
            raise OutOfMemory("an op of the first iterations failed, and a plan cannot leave it out")
        for value in row.inputs:
            if value.block is None or value.state is ValueState.STAND_IN:
                self._replace(value, spare, submission)
        if any(value.block is None for value in row.outputs):
            raise OutOfMemory("the device had no memory for the first iterations")

    def _replace(self, value: Value, spare: list[Block], submission: Submission) -> None:
        """Has a block of zeros stand in for an input that failed. Only results that no client sees depend on it.

        All stand-ins of a submission share one block. An input without a block that is no stand-in found no memory for
        itself, or its producer found none. It stays without a block if the row goes op by op, because only the ops
        that depend on it fail then; if the row has a plan, raises OutOfMemory.
        """
        if value.state is ValueState.STAND_IN:
            if not spare:
                spare.append(self._zeros(_largest_stand_in_bytes(submission)))
            value.block = spare[0]
        elif submission.loaded is not None:
            raise OutOfMemory(NO_INPUT)

    def _zeros(self, size_bytes: int) -> Block:
        try:
            zeros = np.zeros(size_bytes, np.uint8)
        except MemoryError:
            raise OutOfMemory(f"the system has no memory for {size_bytes} bytes") from None
        block = self._memory.allocate(size_bytes)
        self._device.write(block, zeros.data)
        return block


def _largest_stand_in_bytes(submission: Submission) -> int:
    inputs = [value for row in submission.spans for value in row.inputs]
    return max(value.size_bytes for value in inputs if value.state is ValueState.STAND_IN)
