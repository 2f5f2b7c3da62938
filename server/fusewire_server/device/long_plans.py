"""Gives the arena of sliced plans to one run at a time, tenants in turn.

A run has the memory of its results only from when it first has the arena: those that wait take none. If it finds no
room it lets others go first, as it would have come behind them had they run whole. It is refused room once as many have
ended as were before it, or nobody is left who could give any back. Device thread.
"""

from __future__ import annotations

from collections.abc import Hashable

from fusewire_server.device.allocation import Allocation
from fusewire_server.device.memory import DeviceMemory
from fusewire_server.device.orders import Order
from fusewire_server.device.sliced_read import SlicedRead
from fusewire_server.device.sliced_run import SlicedRun
from fusewire_server.scheduling.turns import Turns
from fusewire_server.scheduling.unfinished_orders import Line


class LongPlans:
    """Runs of long plans: the one that has the arena, and those that wait for it, which take no turns meanwhile."""

    def __init__(self, allocation: Allocation, memory: DeviceMemory, line: Line[Order]) -> None:
        self._allocation = allocation
        self._memory = memory
        self._line = line
        self._holder: SlicedRun | None = None
        self._waiting: Turns[SlicedRun] = Turns()  # by tenant
        self._lacked_at_bytes: int | None = None  # what was live when none of these found room; None: who knows now
        self._ended = 0  # orders that went on in slices
        self._refused_at: dict[SlicedRun, int] = {}  # how many are to have ended, of those that found no room

    def enter(self, run: SlicedRun) -> None:
        """A run needs the arena for its next row."""
        if self._holder is not None or not self._waiting.is_empty:
            run.tell_that_it_lasts()
        self._waiting.add(run.tenant, run)
        self._lacked_at_bytes = None

    def next_holder(self, *, others_go_on: bool) -> SlicedRun | None:
        """The run that has the arena from now on, with its memory; None if nobody else gets it now."""
        if self._holder is not None or self._waiting.is_empty or (others_go_on and not self._may_find_room()):
            return None
        lacking: list[SlicedRun] = []
        while (run := self._waiting.take()) is not None and not self._has_room(run):
            lacking.append(run)
        if run is None and not others_go_on:
            run = lacking.pop(0)
        for each in lacking:
            each.tell_that_it_lasts()
            self._waiting.add(each.tenant, each)
        self._lacked_at_bytes = self._memory.live_bytes
        if run is not None:
            self._allocate(run)
        self._holder = run
        return run

    def take_back(self, one: SlicedRun | SlicedRead) -> bool:
        """Whether one that goes on must wait for the arena now: it has had it for a row, and others wait."""
        holder = self._holder
        if holder is None or one is not holder or holder.is_under_way or self._waiting.is_empty:
            return False
        self._holder = None
        self.enter(holder)
        return True

    def owner(self, one: SlicedRun | SlicedRead) -> Hashable:
        """Whose turns it takes: its tenant's; or the arena's, so that those who wait wait for no other runs of its."""
        return self if one is self._holder and not self._waiting.is_empty else one.tenant

    def end(self, one: SlicedRun | SlicedRead) -> None:
        """One that went on in slices has ended."""
        self._ended += 1
        self._lacked_at_bytes = None
        if one is self._holder:
            self._holder = None

    def give_up_unwanted(self) -> list[SlicedRun]:
        """Those that wait in vain, since their sessions have ended. They wait no more, and take no memory."""
        unwanted = self._waiting.take_out(lambda run: run.is_unwanted)
        for run in unwanted:
            self._refused_at.pop(run, None)
            if not run.is_allocated:
                run.cancel()
        return unwanted

    def _may_find_room(self) -> bool:
        return self._lacked_at_bytes is None or self._memory.live_bytes < self._lacked_at_bytes

    def _has_room(self, run: SlicedRun) -> bool:
        """Whether a run has its memory, finds it, or has waited for it long enough."""
        if run.is_allocated or self._allocation.finds_room(run.order.submission):
            return True
        refused_at = self._refused_at.setdefault(run, self._ended + len(self._line.orders()) - 1)
        return self._ended >= refused_at

    def _allocate(self, run: SlicedRun) -> None:
        self._refused_at.pop(run, None)
        if not run.is_allocated:
            run.allocate(self._allocation)
