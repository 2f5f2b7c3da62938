"""Rows at tier 0 of a linked program: one foreign call a slice in place of a call an op. Device thread."""

from __future__ import annotations

import time

from fusewire_kernels.devices.base import Block, Device, LinkedProgram, LinkedRow
from fusewire_server.room import Demand, Room
from fusewire_server.work import Row, Value


class LinkedRows:
    """Computes the rows of one run. They may be stopped anywhere: results are written when all kernels have run."""

    is_foreign = True

    def __init__(self, device: Device, room: Room, linked: LinkedProgram) -> None:
        self._device = device
        self._room = room
        self._linked = linked
        scratch_bytes = linked.scratch_bytes
        self._reservation = room.enter(Demand(scratch_bytes, lambda: scratch_bytes), self._close)
        self._under_way: LinkedRow | None = None
        self._row: Row | None = None

    @property
    def is_under_way(self) -> bool:
        return self._under_way is not None

    def begin(self, row: Row) -> bool:
        """Raises MemoryError."""
        if not self._room.reserve(self._reservation):
            return False
        self._under_way = self._linked.begin([_block(value) for value in row.inputs], row.scalars)
        self._row = row
        return True

    def go_on(self, until_ns: int) -> bool:
        assert self._under_way is not None, "a row that goes on has begun"
        assert self._row is not None, "a row that goes on has begun"
        if not self._under_way.go_on(until_ns - time.perf_counter_ns()):
            return False
        for position, value in enumerate(self._row.outputs):
            self._device.write(_block(value), self._under_way.result(position))
        return True

    def stop(self) -> None:
        self._close()
        self._room.unreserve(self._reservation)

    def leave(self) -> None:
        self._room.leave(self._reservation)

    def _close(self) -> None:
        self._under_way = self._row = None


def _block(value: Value) -> Block:
    assert value.block is not None, "all memory is allocated before a row begins"
    return value.block
