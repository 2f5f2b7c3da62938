"""From programs to loaded plans: asks the planner, has the device load what comes, and tells each entry.

A program is asked for as a whole, for tier 1, and as its one-op calls, for tier 0. Equal calls of all programs are one
request and one plan.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from weakref import WeakValueDictionary

from fusewire_kernels.devices.base import Device
from fusewire_kernels.slots import SlotLayout
from fusewire_server.calls import OneOpCall, calls_of
from fusewire_server.counters import Counters
from fusewire_server.device_thread import Load, Loaded
from fusewire_server.planner import Planned, Planner, PlannerRefusal
from fusewire_server.programs import OneOp, PlanState, ProgramEntry

log = logging.getLogger("fusewire.plans")

Key = ProgramEntry | OneOpCall  # what a plan is asked for


class Plans:
    """Which plans are on their way. Owned by the loop thread.

    Without a planner nothing is ever asked for. `order` takes what the device is to load; `arena_bytes` is the setting
    that a plan's arena must fit.
    """

    def __init__(
        self,
        planner: Planner | None,
        device: Device,
        order: Callable[[Load], None],
        counters: Counters,
        arena_bytes: int,
    ) -> None:
        self._planner = planner
        self._device = device
        self._order = order
        self._counters = counters
        self._arena_bytes = arena_bytes
        self._one_ops: WeakValueDictionary[OneOpCall, OneOp] = WeakValueDictionary()
        self._awaited_calls: dict[OneOpCall, list[ProgramEntry]] = {}  # one-op plans asked for, and by whom

    def plan(self, entry: ProgramEntry) -> None:
        """Asks for the plan of a program, unless that was done before."""
        if self._planner is None or entry.state is not PlanState.UNPLANNED:
            return
        entry.state = PlanState.PLANNING
        answer = self._planner.request(entry.raw, is_urgent=False)
        answer.add_done_callback(partial(self._planned, entry))

    def prepare_tier0(self, entry: ProgramEntry) -> None:
        """Asks for the one-op plans that running `entry` op by op needs and that nobody asked for before."""
        if entry.is_prepared or self._planner is None:
            return
        entry.is_prepared = True
        for call in calls_of(entry.program, is_library_exact=self._device.info.is_library_exact):
            one_op = self._one_ops.get(call)
            if one_op is not None:
                entry.one_ops[call] = one_op
                continue
            entry.missing_calls.add(call)
            waiting = self._awaited_calls.setdefault(call, [])
            waiting.append(entry)
            if len(waiting) == 1:
                answer = self._planner.request(call.raw(), is_urgent=True)
                answer.add_done_callback(partial(self._planned, call))

    def loaded(self, report: Loaded) -> None:
        """The device has loaded a plan."""
        key, loaded = report.key, report.loaded
        arena_bytes = loaded.plan.arena_bytes
        if self._device.rows_that_fit(arena_bytes) == 0:
            limit = self._arena_bytes
            self.refused(key, f"the plan needs an arena of {arena_bytes} bytes; device.arena_bytes = {limit}")
            return
        if isinstance(key, ProgramEntry):
            key.layout = SlotLayout(loaded.plan)
            key.row_ns = 0
            key.state = PlanState.LOADED
            key.loaded = loaded
        elif isinstance(key, OneOpCall):
            one_op = OneOp(loaded, SlotLayout(loaded.plan), key.result())
            self._one_ops[key] = one_op
            self._finish_call(key, one_op)

    def refused(self, key: object, text: str) -> None:
        """There will be no plan."""
        log.warning("no plan: %s", text)
        self._counters.plans_refused += 1
        if isinstance(key, ProgramEntry):
            key.state = PlanState.REFUSED
            key.refusal = text
        elif isinstance(key, OneOpCall):
            self._finish_call(key, None)

    def _planned(self, key: Key, answer: asyncio.Future[Planned]) -> None:
        if answer.cancelled():
            return
        refusal = answer.exception()
        if isinstance(refusal, PlannerRefusal):
            self.refused(key, str(refusal))
            return
        planned = answer.result()
        self._counters.planned(planned)
        if isinstance(key, ProgramEntry):
            key.state = PlanState.LOADING
            key.planning_ns, key.compiling_ns = planned.planning_ns, planned.compiling_ns
        self._order(Load(key, planned.plan, planned.binaries))

    def _finish_call(self, call: OneOpCall, one_op: OneOp | None) -> None:
        """A one-op plan is there, or will never be (then the array library stands in for it)."""
        for entry in self._awaited_calls.pop(call, []):
            if one_op is not None:
                entry.one_ops[call] = one_op
            entry.missing_calls.discard(call)
