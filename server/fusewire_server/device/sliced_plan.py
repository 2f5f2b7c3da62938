"""Runs the rows of a long plan in slices on the device thread, so that other orders run in between.

A row that runs by a plan cannot start again as a row at tier 0 can, because a plan writes results while it runs, and
some results overwrite inputs. So the row keeps its memory until it has ended. Sliced plans use an arena that no other
plan uses, so that a whole plan may run between two slices. `long_plans` decides which run gets that arena.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from fusewire_kernels.devices.base import LoadedPlan, PlanInSlices, PlansInSlices
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_server.sessions.session import Row, Value


class SlicedPlan:
    """Computes the rows of one run by the plan of their program."""

    is_foreign = True

    def __init__(self, in_slices: PlansInSlices, loaded: LoadedPlan, slot_layout: SlotLayout) -> None:
        self._in_slices = in_slices
        self._loaded = loaded
        self._slot_layout = slot_layout
        self._plan: PlanInSlices | None = None  # the plan under way, for the row that is running

    @property
    def is_under_way(self) -> bool:
        return self._plan is not None

    def begin(self, row: Row) -> bool:
        """Begins a row. No other run may use the arena until the row ends. Raises OutOfMemory."""
        plan = self._loaded.plan
        slots = np.zeros(len(plan.columns), np.int64)
        arena_address = self._in_slices.arena_address(plan.arena_bytes)
        inputs, outputs = _addresses(row.inputs), _addresses(row.outputs)
        self._slot_layout.fill(slots, arena_address, inputs, outputs, row.scalars, row.starts)
        self._plan = self._in_slices.begin(self._loaded, slots)
        return True

    def go_on(self, until_ns: int) -> bool:
        assert self._plan is not None, "a row begins before it goes on"
        return self._plan.go_on(until_ns - time.perf_counter_ns())

    def stop(self) -> None:
        self._plan = None

    def leave(self) -> None:
        """Does nothing, because a run by a plan reserves no memory beside the blocks of its rows."""


def _addresses(values: Sequence[Value]) -> list[int]:
    return [_address(value) for value in values]


def _address(value: Value) -> int:
    assert value.block is not None, "a row has all its memory before it begins"
    return value.block.address
