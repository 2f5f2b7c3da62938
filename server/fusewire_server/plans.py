"""From programs to loaded plans: asks the planner, has the device load what comes, and tells each entry.

A program is asked for as a whole, for tier 1, and as its one-op calls, for tier 0. Equal calls of all programs are one
request and one plan. A program without a plan stays at tier 0; one that lacks the plan of a call cannot run at all:
its rows fail, since whatever stood in for the kernel would have other bits, and whoever sends it again asks again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from weakref import WeakValueDictionary

from fusewire_kernels.devices.base import Device
from fusewire_kernels.slots import SlotLayout
from fusewire_protos.errors import BY_NAME
from fusewire_server.calls import OneOpCall, calls_of
from fusewire_server.counters import Counters
from fusewire_server.device_thread import Load, Loaded
from fusewire_server.planner import Planned, Planner, PlannerRefusal, PlanRequest
from fusewire_server.programs import OneOp, PlanState, ProgramEntry
from fusewire_server.session import Session
from fusewire_server.work import Failure

log = logging.getLogger("fusewire.plans")

MOST_PROGRAMS_WAITING = 64  # of a session; what is more is asked for when it is used again
MOST_CALLS_WAITING = 4096  # of a session, but for those of one program

Key = ProgramEntry | OneOpCall  # what a plan is asked for


class _Awaited(NamedTuple):
    """A one-op plan on its way, and the programs that need it."""

    request: PlanRequest
    entries: set[ProgramEntry]


class Plans:
    """Which plans are on their way. Owned by the loop thread.

    Without a planner nothing is ever asked for. `order` takes what the device is to load; `arena_bytes` is the setting
    that a plan's arena must fit; `retry` is called when rows that waited may be looked at again and no report says so.
    """

    def __init__(
        self,
        planner: Planner | None,
        device: Device,
        order: Callable[[Load], None],
        counters: Counters,
        arena_bytes: int,
        retry: Callable[[], None],
    ) -> None:
        self._planner = planner
        self._device = device
        self._order = order
        self._counters = counters
        self._arena_bytes = arena_bytes
        self._retry = retry
        self._one_ops: WeakValueDictionary[OneOpCall, OneOp] = WeakValueDictionary()
        self._awaited: dict[OneOpCall, _Awaited] = {}

    def plan(self, entry: ProgramEntry, session: Session) -> None:
        """Asks for the plan of a program, unless that was done before."""
        planner = self._planner
        if planner is None or entry.state is not PlanState.UNPLANNED:
            return
        if planner.waiting(session, is_urgent=False) >= MOST_PROGRAMS_WAITING:
            return
        entry.enter(PlanState.PLANNING)
        request = planner.request(entry.raw, session, is_urgent=False, is_wanted=lambda: entry.holders > 0)
        request.answer.add_done_callback(partial(self._answered, entry))

    def prepare_tier0(self, entry: ProgramEntry, session: Session) -> None:
        """Asks for the one-op plans that running `entry` op by op needs and that are not there."""
        planner = self._planner
        if planner is None:
            return
        if not entry.is_prepared:
            self._list_missing(planner, entry, session)
        for call in entry.missing_calls:
            self._await(planner, call, entry, session)

    def leave(self, session: Session) -> None:
        """The session has ended and waits for no plan any more."""
        if self._planner is not None:
            self._planner.leave(session)

    def loaded(self, report: Loaded) -> None:
        """The device has loaded a plan."""
        key, loaded = report.key, report.loaded
        arena_bytes = loaded.plan.arena_bytes
        if self._device.rows_that_fit(arena_bytes) == 0:
            limit = self._arena_bytes
            text = f"the plan needs an arena of {arena_bytes} bytes; device.arena_bytes = {limit}"
            self.refused(key, text, case="out_of_memory")
            return
        if isinstance(key, ProgramEntry):
            key.layout = SlotLayout(loaded.plan)
            key.row_ns = 0
            key.enter(PlanState.LOADED)
            key.loaded = loaded
        elif isinstance(key, OneOpCall):
            self._one_ops[key] = one_op = OneOp(loaded, SlotLayout(loaded.plan), key.result())
            for entry in self._no_longer_awaited(key):
                entry.one_ops[key] = one_op
                entry.missing_calls.discard(key)

    def refused(self, key: object, text: str, *, case: str = "server_fault") -> None:
        """There will be no plan. Rows that cannot run without it fail with `case`."""
        log.warning("no plan: %s", text)
        self._counters.plans_refused += 1
        if isinstance(key, ProgramEntry):
            key.enter(PlanState.REFUSED)
            key.refusal = text
        elif isinstance(key, OneOpCall):
            failure = Failure(BY_NAME[case], f"no kernel for {key.op.name}: {text}", 0, 0)
            for entry in self._no_longer_awaited(key):
                entry.cannot_run(failure)

    def _list_missing(self, planner: Planner, entry: ProgramEntry, session: Session) -> None:
        entry.is_prepared = True
        entry.fault = None
        calls = calls_of(entry.program, is_library_exact=self._device.info.is_library_exact)
        entry.one_ops.update((call, one_op) for call in calls if (one_op := self._one_ops.get(call)) is not None)
        missing = calls.difference(entry.one_ops)
        waiting = planner.waiting(session, is_urgent=True)
        if waiting and waiting + len(missing) > MOST_CALLS_WAITING:
            text = f"{waiting} kernels are being prepared for this session and {len(missing)} more would be too many"
            entry.cannot_run(Failure(BY_NAME["server_fault"], f"{text} (at most {MOST_CALLS_WAITING})", 0, 0))
        else:
            entry.missing_calls = missing

    def _await(self, planner: Planner, call: OneOpCall, entry: ProgramEntry, session: Session) -> None:
        awaited = self._awaited.get(call)
        if awaited is None or awaited.request.answer.cancelled():
            request = planner.request(call.raw(), session, is_urgent=True)
            request.answer.add_done_callback(partial(self._answered, call))
            awaited = self._awaited[call] = _Awaited(request, awaited.entries if awaited is not None else set())
        planner.join(awaited.request, session)
        awaited.entries.add(entry)

    def _answered(self, key: Key, answer: asyncio.Future[Planned]) -> None:
        if answer.cancelled():
            self._withdrawn(key, answer)
            return
        refusal = answer.exception()
        if isinstance(refusal, PlannerRefusal):
            self.refused(key, str(refusal))
            self._retry()
            return
        planned = answer.result()
        self._counters.planned(planned)
        if isinstance(key, ProgramEntry):
            key.enter(PlanState.LOADING)
            key.planning_ns, key.compiling_ns = planned.planning_ns, planned.compiling_ns
        self._order(Load(key, planned.plan, planned.binaries))

    def _withdrawn(self, key: Key, answer: asyncio.Future[Planned]) -> None:
        """Nobody waits for the plan any more; whoever needs it next asks anew."""
        if isinstance(key, ProgramEntry):
            key.enter(PlanState.UNPLANNED)
            return
        awaited = self._awaited.get(key)
        if awaited is None or awaited.request.answer is not answer:
            return  # it has been asked for anew
        for entry in self._no_longer_awaited(key):
            entry.is_prepared = False
            entry.missing_calls.clear()

    def _no_longer_awaited(self, call: OneOpCall) -> set[ProgramEntry]:
        awaited = self._awaited.pop(call, None)
        return awaited.entries if awaited is not None else set()
