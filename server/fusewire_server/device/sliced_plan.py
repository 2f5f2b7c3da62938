"""Runs the rows of a long plan in slices on the device thread, so that other orders run in between.

A row that runs by a plan cannot start again as a row at tier 0 can, because a plan writes results while it runs, and
some results overwrite inputs. So the row keeps its memory until it has ended. Sliced plans use an arena that no other
plan uses, so that a whole plan may run between two slices. `long_plans` decides which run gets that arena.
"""

from __future__ import annotations

import time
from collections import deque
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
        self._plan: PlanInSlices | None = None  # the plan under way, for an iteration of the row that is running
        self._left: deque[Row] = deque()  # the iterations of this row that have not begun

    @property
    def is_under_way(self) -> bool:
        return self._plan is not None

    def begin(self, row: Row, span: range) -> bool:
        """Begins a row. No other run may use the arena until the row ends. Raises OutOfMemory."""
        self._left.extend([row.at(iteration) for iteration in span])
        self._plan = self._begin(self._left.popleft())
        return True

    def _begin(self, row: Row) -> PlanInSlices:
        plan = self._loaded.plan
        slots = np.zeros(len(plan.columns), np.int64)
        arena_address = self._in_slices.arena_address(plan.arena_bytes)
        inputs, outputs = _addresses(row.inputs), _addresses(row.outputs)
        self._slot_layout.fill(slots, arena_address, inputs, outputs, row.scalars, row.starts)
        return self._in_slices.begin(self._loaded, slots)

    def go_on(self, until_ns: int) -> bool:
        assert self._plan is not None, "a row begins before it goes on"
        if not self._plan.go_on(until_ns - time.perf_counter_ns()):
            return False
        if not self._left:
            return True
        self._plan = self._begin(self._left.popleft())
        return False

    def stop(self) -> None:
        self._plan = None
        self._left.clear()

    def leave(self) -> None:
        """Does nothing, because a run by a plan reserves no memory beside the blocks of its rows."""


def _addresses(values: Sequence[Value]) -> list[int]:
    return [_address(value) for value in values]


def _address(value: Value) -> int:
    assert value.block is not None, "a row has all its memory before it begins"
    return value.block.address
