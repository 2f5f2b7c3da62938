"""Gets loaded plans for programs: asks the planner, orders the device to load the plans, and updates the entries.

Each program has one plan for tier 1, and one plan for each of its one-op calls that tier 0 needs. Equal calls of all
programs share one request and one plan. A program without a plan for tier 1 stays at tier 0. If the plan of a one-op
call cannot be made, the program cannot run at tier 0. Its rows then fail, because any replacement of the missing kernel
would give results with other bits. If a client sends the program again, the server asks for the plan of the call again.

A row of very many ops would take longer op by op than its plan takes to come, and compiling the one-op plans delays the
plan. So they are asked for only if the plan has not come within `PLAN_FIRST_S`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from weakref import WeakSet, WeakValueDictionary

from fusewire_kernels.devices.base import Device
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.errors import BY_NAME, bounded_text
from fusewire_server.device.orders import Load, Loaded
from fusewire_server.planning.planner import Planned, Planner, PlannerRefusal, PlanRequest
from fusewire_server.planning.preparations import NOT_LISTED, Preparations
from fusewire_server.programs.counters import Counters
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.one_op_calls import OneOpCall, OneOpCalls
from fusewire_server.programs.program_table import OneOp, PlanState, ProgramEntry
from fusewire_server.programs.row_cost import RowCost
from fusewire_server.sessions.session import Session

log = logging.getLogger("fusewire.plans")

MOST_PROGRAMS_WAITING = 64  # of a session; the server asks for a further program when that program is used again
MOST_CALLS_WAITING = 4096  # of a session; a session that has no calls waiting may exceed it with one program

ASK_AGAIN_S = 10.0
PLAN_FIRST_S = 1.0
_VERY_MANY_OPS = 50_000  # take half a second at tier 0 on a GPU

Key = ProgramEntry | OneOpCall  # a plan is made for each key


class _Awaited(NamedTuple):
    """The request for a one-op plan, and the programs that will get the plan. Programs may be evicted meanwhile."""

    request: PlanRequest
    entries: WeakSet[ProgramEntry]


class Plans:
    """The plans that are being made and loaded. The loop thread owns this state.

    Without a planner no plan is ever asked for. `order` takes the load orders for the device. `arena_bytes` is a
    setting: the arena of a plan may not be larger. `retry` is called when waiting rows may run now and no report of the
    device thread has told the engine.
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
        self.trouble = ""  # why the machine cannot compile, until it can again
        self._one_ops: WeakValueDictionary[OneOpCall, OneOp] = WeakValueDictionary()
        self._awaited: dict[OneOpCall, _Awaited] = {}
        self._planning: dict[ProgramEntry, PlanRequest] = {}
        self._plan_first: dict[ProgramEntry, set[Session]] = {}  # sessions whose rows wait for the program's plan first
        self._preparations = Preparations(self._take_call, self._has_none_waiting, _in_the_next_turn, retry)

    def plan(self, entry: ProgramEntry, session: Session) -> None:
        """Asks for the plan of a program. A request that is already waiting gets a turn of this session too."""
        planner = self._planner
        if planner is None or planner.waiting(session, is_urgent=False) >= MOST_PROGRAMS_WAITING:
            return
        request = self._planning.get(entry)
        if request is not None and not request.answer.cancelled():
            planner.join(request, session)
        elif request is not None or entry.state is PlanState.UNPLANNED:
            entry.enter(PlanState.PLANNING)
            request = planner.request(entry.raw, session, is_urgent=False, is_wanted=lambda: entry.holders > 0)
            request.answer.add_done_callback(partial(self._answered, entry))
            self._planning[entry] = request

    def prepare_tier0(self, entry: ProgramEntry, session: Session, ops: int = 1) -> None:
        """Asks for the one-op plans that `entry` needs at tier 0 and that are missing. The row runs `ops` ops.

        If a program needs many plans, asks for the first plans now and for the others in later turns of the event loop.
        """
        if self._planner is None:
            return
        if not entry.has_begun_preparing:
            if ops >= _VERY_MANY_OPS and (entry in self._planning or entry.state is PlanState.LOADING):
                self._wait_for_plan(entry, session)
            else:
                self._prepare(entry, {session, *self._plan_first.pop(entry, ())})
        elif entry.missing_calls:
            self._preparations.begin(entry, session)

    def _wait_for_plan(self, entry: ProgramEntry, session: Session) -> None:
        sessions = self._plan_first.get(entry)
        if sessions is None:
            sessions = self._plan_first[entry] = set()
            entry.missing_calls.add(NOT_LISTED)  # its rows wait
            asyncio.get_running_loop().call_later(PLAN_FIRST_S, self._wait_no_longer, entry)
        sessions.add(session)

    def _wait_no_longer(self, entry: ProgramEntry) -> None:
        sessions = self._plan_first.pop(entry, None)
        if sessions and entry.loaded is None:
            self._prepare(entry, sessions)
            self._retry()

    def _prepare(self, entry: ProgramEntry, sessions: set[Session]) -> None:
        if entry.calls is None:
            entry.calls = OneOpCalls(entry.program, is_library_exact=self._device.info.is_library_exact)
        entry.has_begun_preparing = True
        entry.fault = None
        for session in sessions:
            self._preparations.begin(entry, session)

    def leave(self, session: Session) -> None:
        """Withdraws the requests of a session that has ended."""
        if self._planner is not None:
            self._planner.leave(session)
            self._preparations.leave(session)
            for sessions in self._plan_first.values():
                sessions.discard(session)

    def loaded(self, report: Loaded) -> None:
        """Gives a plan that the device has loaded to its programs."""
        key, loaded = report.key, report.loaded
        arena_bytes = loaded.plan.arena_bytes
        if self._device.rows_that_fit(arena_bytes) == 0:
            limit = self._arena_bytes
            text = f"the plan needs an arena of {arena_bytes} bytes; device.arena_bytes = {limit}"
            self.refused(key, text, case="out_of_memory")
            return
        if isinstance(key, ProgramEntry):
            key.slot_layout = SlotLayout(loaded.plan)
            key.cost = RowCost()
            key.enter(PlanState.LOADED)
            key.loaded = loaded
            key.refusal = ""
        elif isinstance(key, OneOpCall):
            self._one_ops[key] = one_op = OneOp(loaded, SlotLayout(loaded.plan), key.result())
            for entry in self._no_longer_awaited(key):
                entry.one_ops[key] = one_op
                entry.missing_calls.discard(key)
                if not entry.missing_calls:
                    self._preparations.end(entry)

    def refused(self, key: object, text: str, *, case: str = "server_fault") -> None:
        """Notes that a plan will not be made. Rows that cannot run without it fail with `case`."""
        text = bounded_text(text)
        log.warning("no plan: %s", text)
        self._counters.plans_refused += 1
        if isinstance(key, ProgramEntry):
            key.enter(PlanState.REFUSED)
            key.refusal = text
            self._wait_no_longer(key)
        elif isinstance(key, OneOpCall):
            failure = Failure(BY_NAME[case], f"no kernel for {key.op.name}: {text}", 0, 0)
            for entry in self._no_longer_awaited(key):
                if key in entry.missing_calls:
                    self._give_up(entry, failure)

    def _take_call(self, call: OneOpCall, entry: ProgramEntry, session: Session, *, is_first: bool) -> bool:
        """Gets the plan of a call or asks for it. Returns False if the session already waits for too many plans."""
        assert self._planner is not None, "programs are prepared only with a planner"
        one_op = entry.one_ops.get(call) or self._one_ops.get(call)
        if one_op is not None:
            entry.one_ops[call] = one_op
            return True
        waiting = self._planner.waiting(session, is_urgent=True)
        if waiting >= MOST_CALLS_WAITING and not is_first:
            text = f"{waiting} kernels are being prepared for this session already"
            failure = Failure(BY_NAME["server_fault"], f"{text} (at most {MOST_CALLS_WAITING})", 0, 0)
            self._give_up(entry, failure)
            return False
        entry.missing_calls.add(call)
        self._await(self._planner, call, entry, session)
        return True

    def _give_up(self, entry: ProgramEntry, failure: Failure) -> None:
        entry.cannot_run(failure)
        self._preparations.end(entry)

    def _has_none_waiting(self, session: Session) -> bool:
        return self._planner is not None and self._planner.waiting(session, is_urgent=True) == 0

    def _await(self, planner: Planner, call: OneOpCall, entry: ProgramEntry, session: Session) -> None:
        awaited = self._awaited.get(call)
        if awaited is None or awaited.request.answer.cancelled():
            request = planner.request(call.raw(), session, is_urgent=True)
            request.answer.add_done_callback(partial(self._answered, call))
            entries = awaited.entries if awaited is not None else WeakSet[ProgramEntry]()
            awaited = self._awaited[call] = _Awaited(request, entries)
        planner.join(awaited.request, session)
        awaited.entries.add(entry)

    def _answered(self, key: Key, answer: asyncio.Future[Planned]) -> None:
        if answer.cancelled():
            self._withdrawn(key, answer)
            return
        if isinstance(key, ProgramEntry):
            del self._planning[key]
        refusal = answer.exception()
        if isinstance(refusal, PlannerRefusal):
            self.refused(key, str(refusal))
            if refusal.is_passing:
                self._ask_later(key, str(refusal))
            self._retry()
            return
        self.trouble = ""
        planned = answer.result()
        self._counters.planned(
            planned.planning_ns, planned.compiling_ns, kernels=len(planned.binaries), compiled=planned.compiled
        )
        if isinstance(key, ProgramEntry):
            key.enter(PlanState.LOADING)
            key.planning_ns, key.compiling_ns = planned.planning_ns, planned.compiling_ns
        self._order(Load(key, planned.plan, planned.binaries))

    def _ask_later(self, key: Key, text: str) -> None:
        """Lets a program that was refused because of the machine be planned when it is used after `ASK_AGAIN_S`.

        A one-op plan is asked for at the next use anyway.
        """
        self.trouble = bounded_text(text)
        if isinstance(key, ProgramEntry):
            asyncio.get_running_loop().call_later(ASK_AGAIN_S, key.enter, PlanState.UNPLANNED)

    def _withdrawn(self, key: Key, answer: asyncio.Future[Planned]) -> None:
        """Notes that no session waits for the plan any more. The next session that needs the plan asks again."""
        if isinstance(key, ProgramEntry):
            if self._planning[key].answer is answer:  # no newer request has replaced this one
                del self._planning[key]
                key.enter(PlanState.UNPLANNED)
                self._wait_no_longer(key)
            return
        awaited = self._awaited.get(key)
        if awaited is not None and awaited.request.answer is answer:
            self._no_longer_awaited(key)

    def _no_longer_awaited(self, call: OneOpCall) -> set[ProgramEntry]:
        awaited = self._awaited.pop(call, None)
        return set() if awaited is None else set(awaited.entries)


def _in_the_next_turn(function: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(function)
