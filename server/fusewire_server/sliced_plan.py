"""Runs of long plans in slices: others need not wait for their ends. Device thread.

A plan cannot be begun anew as a row at tier 0 can: it writes its results as it goes, some of them over its inputs. So
it keeps all that it has until its row has ended. Its arena is one that is apart, so that whole plans may run between
its slices; as there is one, another long plan waits for the row to end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from fusewire_kernels.devices.base import LoadedPlan, PlanInSlices, PlansInSlices
from fusewire_kernels.slots import SlotLayout
from fusewire_server.work import Row, Value

_MOST_NS = 1 << 62


class LongPlans:
    """What all runs of long plans share: the arena."""

    def __init__(self, in_slices: PlansInSlices) -> None:
        self.in_slices = in_slices
        self.holder: SlicedPlan | None = None  # whose row has the arena


class SlicedPlan:
    """Computes the rows of one run by their plan."""

    is_foreign = True

    def __init__(self, shared: LongPlans, loaded: LoadedPlan, layout: SlotLayout) -> None:
        self._shared = shared
        self._loaded = loaded
        self._layout = layout
        self._plan: PlanInSlices | None = None  # of the row under way

    @property
    def is_under_way(self) -> bool:
        return self._plan is not None

    def begin(self, row: Row) -> bool:
        """Raises OutOfMemory."""
        shared, plan = self._shared, self._loaded.plan
        if shared.holder is not None:
            return False
        slots = np.zeros(len(plan.columns), np.int64)
        arena_address = shared.in_slices.arena_address(plan.arena_bytes)
        inputs, outputs = _addresses(row.inputs), _addresses(row.outputs)
        self._layout.fill(slots, arena_address, inputs, outputs, row.scalars, row.starts)
        self._plan = shared.in_slices.begin(self._loaded, slots)
        shared.holder = self
        return True

    def go_on(self, until_ns: float) -> bool:
        assert self._plan is not None, "a row that goes on has begun"
        return self._plan.go_on(int(min(until_ns - time.perf_counter_ns(), _MOST_NS)))

    def stop(self) -> None:
        self._plan = None
        if self._shared.holder is self:
            self._shared.holder = None

    def leave(self) -> None:
        """It takes nothing beside its rows."""


def _addresses(values: Sequence[Value]) -> list[int]:
    blocks = [value.block for value in values]
    return [block.address for block in blocks if block is not None]  # all memory is allocated before a run begins
