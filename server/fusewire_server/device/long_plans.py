"""Gives the arena of sliced plans to one run of a long plan at a time; tenants take turns. Device thread.

A run gets the memory of its results when it first gets the arena, so waiting runs hold no memory. If a run finds too
little memory, other runs go first: without slices, earlier orders would also have ended before the run, and would have
released their memory. The run stops waiting, and fails for lack of memory, in two cases: as many orders have ended as
were unfinished when it first found too little, or no other order is left that could release memory.
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
    """The run that has the arena, and the runs that wait for the arena. A waiting run gets no slices."""

    def __init__(self, allocation: Allocation, memory: DeviceMemory, line: Line[Order]) -> None:
        self._allocation = allocation
        self._memory = memory
        self._line = line
        self._holder: SlicedRun | None = None
        self._waiting: Turns[SlicedRun] = Turns()  # by tenant
        # Live bytes at the last search, in which waiting runs found too little memory. None if another may find enough.
        self._lacked_at_bytes: int | None = None
        self._ended = 0  # the number of orders that ran in slices and have ended
        # For each run that found too little memory: the value of `_ended` at which the run stops waiting.
        self._refused_at: dict[SlicedRun, int] = {}

    def enter(self, run: SlicedRun) -> None:
        """Adds a run that needs the arena for its next row."""
        if self._holder is not None or not self._waiting.is_empty:
            run.tell_that_it_lasts()
        self._waiting.add(run.tenant, run)
        self._lacked_at_bytes = None

    def next_holder(self, *, others_go_on: bool) -> SlicedRun | None:
        """Gives the arena to a waiting run and allocates the memory of the run's results.

        `others_go_on` tells whether other orders still run in slices. If none does, a run gets the arena even if there
        is too little memory for it. Returns the run, or None if no run gets the arena now.
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
        """Takes the arena from `one` if it has it, is between two rows, and other runs wait. Returns whether it did."""
        holder = self._holder
        if holder is None or one is not holder or holder.is_under_way or self._waiting.is_empty:
            return False
        self._holder = None
        self.enter(holder)
        return True

    def owner(self, one: SlicedRun | SlicedRead) -> Hashable:
        """Returns the owner whose turns an order takes: its tenant, or this object if the order has the arena and runs
        wait for the arena.

        The order that has the arena then shares its turns with no other order, so only this one order delays the runs
        that wait.
        """
        return self if one is self._holder and not self._waiting.is_empty else one.tenant

    def end(self, one: SlicedRun | SlicedRead) -> None:
        """Notes the end of an order that ran in slices."""
        self._ended += 1
        self._lacked_at_bytes = None
        if one is self._holder:
            self._holder = None

    def give_up_unwanted(self) -> list[SlicedRun]:
        """Removes and returns the waiting runs whose sessions have all ended. These runs get no memory."""
        unwanted = self._waiting.take_out(lambda run: run.is_unwanted)
        for run in unwanted:
            self._refused_at.pop(run, None)
            if not run.is_allocated:
                run.cancel()
        return unwanted

    def _may_find_room(self) -> bool:
        return self._lacked_at_bytes is None or self._memory.live_bytes < self._lacked_at_bytes

    def _has_room(self, run: SlicedRun) -> bool:
        """Returns whether a run need not wait: it has its memory, can get it now, or has waited as long as it may."""
        if run.is_allocated or self._allocation.finds_room(run.order.submission):
            return True
        refused_at = self._refused_at.setdefault(run, self._ended + len(self._line.orders()) - 1)
        return self._ended >= refused_at

    def _allocate(self, run: SlicedRun) -> None:
        self._refused_at.pop(run, None)
        if not run.is_allocated:
            run.allocate(self._allocation)
