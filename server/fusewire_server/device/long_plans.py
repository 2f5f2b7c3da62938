"""Gives the arena of sliced plans to one run at a time; tenants take turns.

A run gets the memory of its results when it first gets the arena, so that runs that wait take no memory. A run that
finds no memory lets other runs go first, because it would also run after them if all ran whole. It is refused memory
once as many orders have ended as were before it, or once no other order is left that could release any. Device thread.
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
    """The run of a long plan that has the arena, and the runs that wait for it; those that wait get no slices."""

    def __init__(self, allocation: Allocation, memory: DeviceMemory, line: Line[Order]) -> None:
        self._allocation = allocation
        self._memory = memory
        self._line = line
        self._holder: SlicedRun | None = None
        self._waiting: Turns[SlicedRun] = Turns()  # by tenant
        # Live bytes when no waiting run found memory; None if that may have changed.
        self._lacked_at_bytes: int | None = None
        self._ended = 0  # number of ended orders that went in slices
        # By run that found no memory: the value of `_ended` at which it is refused.
        self._refused_at: dict[SlicedRun, int] = {}

    def enter(self, run: SlicedRun) -> None:
        """Adds a run that needs the arena for its next row."""
        if self._holder is not None or not self._waiting.is_empty:
            run.tell_that_it_lasts()
        self._waiting.add(run.tenant, run)
        self._lacked_at_bytes = None

    def next_holder(self, *, others_go_on: bool) -> SlicedRun | None:
        """Gives the arena to a waiting run and allocates its memory.

        Returns the run, or None if no run gets the arena now.
        """
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
        """Takes the arena from an order if it has run a row in it and other runs wait. Returns whether it did."""
        holder = self._holder
        if holder is None or one is not holder or holder.is_under_way or self._waiting.is_empty:
            return False
        self._holder = None
        self.enter(holder)
        return True

    def owner(self, one: SlicedRun | SlicedRead) -> Hashable:
        """Returns the owner of an order's turns: its tenant, or the arena if runs wait for it, so that only one run
        delays them.
        """
        return self if one is self._holder and not self._waiting.is_empty else one.tenant

    def end(self, one: SlicedRun | SlicedRead) -> None:
        """Notes that an order that went in slices has ended."""
        self._ended += 1
        self._lacked_at_bytes = None
        if one is self._holder:
            self._holder = None

    def give_up_unwanted(self) -> list[SlicedRun]:
        """Removes and returns the waiting runs of which all sessions have ended. They take no memory."""
        unwanted = self._waiting.take_out(lambda run: run.is_unwanted)
        for run in unwanted:
            self._refused_at.pop(run, None)
            if not run.is_allocated:
                run.cancel()
        return unwanted

    def _may_find_room(self) -> bool:
        return self._lacked_at_bytes is None or self._memory.live_bytes < self._lacked_at_bytes

    def _has_room(self, run: SlicedRun) -> bool:
        """Returns whether a run has its memory, finds it, or has waited for it long enough to be refused."""
        if run.is_allocated or self._allocation.finds_room(run.order.submission):
            return True
        refused_at = self._refused_at.setdefault(run, self._ended + len(self._line.orders()) - 1)
        return self._ended >= refused_at

    def _allocate(self, run: SlicedRun) -> None:
        self._refused_at.pop(run, None)
        if not run.is_allocated:
            run.allocate(self._allocation)
