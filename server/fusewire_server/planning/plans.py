"""Gets loaded plans: asks the planner, orders the device to load the plans, and updates the programs' entries.

Each program has one plan for tier 1. Until it is loaded, the program runs op by op, by plans of one-op calls. The
device thread finds these by itself, but for those whose kernels nobody has compiled yet. Rows wait for these kernels,
so they are asked for ahead of all plans of programs.

A refusal that the machine caused, such as a full disk, is *passing*: the plan is asked for again, with growing pauses,
while a session uses the program or waits for the kernel. So rows never fail for such a reason. A program that is
refused for a reason of its own stays at tier 0, and a call that is refused so fails the ops that need it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from fusewire_kernels.devices.base import Device, LoadedPlan
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.errors import bounded_text
from fusewire_protos.programs.codec import encode
from fusewire_server.device.orders import Lacks, Load, Loaded, NoKernel, Unloadable
from fusewire_server.planning.planner import Planned, Planner, PlannerRefusal, PlanRequest
from fusewire_server.programs.counters import OF_MACHINE, OF_PROGRAM, Counters
from fusewire_server.programs.program_table import PlanState, ProgramEntry
from fusewire_server.programs.row_cost import RowCost
from fusewire_server.sessions.session import Session, SessionState
from fusewire_server.sessions.tenant_usage import TenantUsage

log = logging.getLogger("fusewire.plans")

MOST_PROGRAMS_WAITING = 64  # of a session; the server asks for a further program when that program is used again
FIRST_PAUSE_S = 1.0  # between a passing refusal and the next request; each further pause is twice as long
MOST_PAUSE_S = 30.0
LONG_ROW_NS = 1_000_000_000  # the estimated time from which a row runs op by op on a processor
_SHARE_OF_MEMORY = 4  # of a device's memory, that the values of such a row may take: a quarter


class KernelWait(NamedTuple):
    """Rows of some sessions wait for the kernel of an op. `refusal` says why the last attempt at it failed, if any."""

    op: str
    sessions: frozenset[Session]
    since_ns: int  # on the monotonic clock
    refusal: str


@dataclass(eq=False)
class _Awaited:
    """A one-op plan that rows of `sessions` wait for. `request` is None during the pause after a refusal."""

    sessions: set[Session] = field(default_factory=set)
    request: PlanRequest | None = None
    since_ns: int = field(default_factory=time.monotonic_ns)
    refusals: int = 0
    refusal: str = ""


class Plans:
    """The plans that are being made and loaded. The engine thread owns this state.

    Without a planner no plan is ever asked for. `order` takes the orders for the device. `arena_bytes` is a setting:
    the arena of a plan may not be larger.
    """

    def __init__(
        self,
        planner: Planner | None,
        device: Device,
        order: Callable[[Load | NoKernel], None],
        counters: Counters,
        arena_bytes: int,
    ) -> None:
        self._planner = planner
        self._device = device
        self._order = order
        self._counters = counters
        self._arena_bytes = arena_bytes
        self.trouble = ""  # why the machine cannot compile, until it can again
        self._awaited: dict[OneOpCall, _Awaited] = {}
        self._planning: dict[ProgramEntry, PlanRequest] = {}

    # ---- programs ----

    def plan(self, entry: ProgramEntry, session: Session) -> None:
        """Asks for the plan of a program. A request that is already waiting gets a turn of this session too.

        Fragments may wait for the plans of loops, because a loop mostly runs more often.
        """
        planner = self._planner
        if planner is None or planner.waiting(session, is_urgent=False) >= MOST_PROGRAMS_WAITING:
            return
        request = self._planning.get(entry)
        if request is not None and not request.answer.cancelled():
            planner.join(request, session, may_wait=entry.is_fragment)
        elif request is not None or entry.state is PlanState.UNPLANNED:
            entry.enter(PlanState.PLANNING)
            request = planner.request(
                entry.raw,
                session,
                is_urgent=False,
                may_wait=entry.is_fragment,
                is_wanted=lambda: entry.holders > 0,
            )
            request.answer.add_done_callback(partial(self._program_answered, entry, session.usage))
            self._planning[entry] = request

    def _program_answered(self, entry: ProgramEntry, usage: TenantUsage, answer: asyncio.Future[Planned]) -> None:
        if answer.cancelled():  # no session wants the plan any more; the next one that needs it asks again
            if self._planning[entry].answer is answer:  # no newer request has replaced this one
                del self._planning[entry]
                entry.enter(PlanState.UNPLANNED)
            return
        del self._planning[entry]
        refusal = answer.exception()
        if isinstance(refusal, PlannerRefusal):
            self._refuse_program(entry, str(refusal), is_passing=refusal.is_passing)
            return
        planned = self._taken(answer.result())
        entry.enter(PlanState.LOADING)
        entry.planning_ns, entry.compiling_ns = planned.planning_ns, planned.compiling_ns
        usage.planner_ns += planned.planning_ns + planned.compiling_ns
        self._order(Load(entry, planned.plan, planned.binaries))

    def _refuse_program(self, entry: ProgramEntry, text: str, *, is_passing: bool) -> None:
        """Notes that a program has no plan. If the refusal is passing, it is planned when it is used after a pause."""
        self._note_refusal("no plan", text, is_passing=is_passing)
        entry.enter(PlanState.REFUSED)
        entry.refusal = bounded_text(text)
        if is_passing:
            entry.refusals += 1
            asyncio.get_running_loop().call_later(_pause_s(entry.refusals), entry.enter, PlanState.UNPLANNED)

    # ---- one-op calls ----

    def _need(self, calls: Iterable[OneOpCall], sessions: Iterable[Session]) -> None:
        """Asks for the kernels of one-op calls, for which rows of some sessions wait on the device thread."""
        waiting = {session for session in sessions if session.state is not SessionState.CLOSED}
        for call in calls:
            if self._planner is None:
                self._order(NoKernel(call, "this server compiles nothing"))
            elif not waiting:
                self._order(NoKernel(call, ""))
            else:
                self._await(self._planner, call, waiting)

    def waits(self) -> list[KernelWait]:
        """Returns the kernels that rows wait for, the longest wait first."""
        return [
            KernelWait(call.op.name, frozenset(each.sessions), each.since_ns, each.refusal)
            for call, each in self._awaited.items()
        ]

    def _await(self, planner: Planner, call: OneOpCall, sessions: set[Session]) -> None:
        awaited = self._awaited.get(call)
        if awaited is None:
            awaited = self._awaited[call] = _Awaited()
            self._request(planner, call, awaited, sessions)
        elif awaited.request is not None:
            for session in sessions:
                planner.join(awaited.request, session)
        awaited.sessions |= sessions

    def _request(self, planner: Planner, call: OneOpCall, awaited: _Awaited, sessions: set[Session]) -> None:
        first, *others = sessions
        request = planner.request(encode(call.program()), first, is_urgent=True)
        for session in others:
            planner.join(request, session)
        awaited.request = request
        request.answer.add_done_callback(partial(self._call_answered, call, awaited))

    def _call_answered(self, call: OneOpCall, awaited: _Awaited, answer: asyncio.Future[Planned]) -> None:
        if self._awaited.get(call) is not awaited:  # all its sessions have ended
            return
        if answer.cancelled():
            self._ask_again(call, awaited)
            return
        refusal = answer.exception()
        if isinstance(refusal, PlannerRefusal):
            self._refuse_call(call, str(refusal), is_passing=refusal.is_passing)
            return
        planned = self._taken(answer.result())
        self._order(Load(call, planned.plan, planned.binaries))

    def _refuse_call(self, call: OneOpCall, text: str, *, is_passing: bool) -> None:
        self._note_refusal(f"no kernel for {call.op.name}", text, is_passing=is_passing)
        awaited = self._awaited.get(call)
        if not is_passing:
            self._awaited.pop(call, None)
            self._order(NoKernel(call, text))
        elif awaited is not None:
            awaited.request = None
            awaited.refusal = bounded_text(text)
            awaited.refusals += 1
            loop = asyncio.get_running_loop()
            loop.call_later(_pause_s(awaited.refusals), self._ask_again, call, awaited)

    def _ask_again(self, call: OneOpCall, awaited: _Awaited) -> None:
        if self._awaited.get(call) is awaited and self._planner is not None:
            self._request(self._planner, call, awaited, awaited.sessions)

    # ---- both ----

    def remove_session(self, session: Session) -> None:
        """Withdraws the requests of a session that has ended. Its rows that wait for kernels are given up."""
        if self._planner is None:
            return
        for call, awaited in list(self._awaited.items()):
            if session in awaited.sessions:
                awaited.sessions.discard(session)
                if not awaited.sessions:
                    del self._awaited[call]
                self._order(NoKernel(call, ""))
        self._planner.remove_owner(session)

    def take(self, report: Loaded | Unloadable | Lacks) -> None:
        """Handles a report of the device thread. It cannot load a plan for want of memory, or from a damaged file."""
        match report:
            case Lacks(calls, sessions):
                self._need(calls, sessions)
            case Loaded(OneOpCall() as call):
                self._awaited.pop(call, None)
            case Loaded(ProgramEntry() as entry, loaded):
                self._program_loaded(entry, loaded)
            case Unloadable(OneOpCall() as call, text):
                self._refuse_call(call, text, is_passing=True)
            case Unloadable(ProgramEntry() as entry, text):
                self._refuse_program(entry, text, is_passing=True)

    def _program_loaded(self, entry: ProgramEntry, loaded: LoadedPlan) -> None:
        arena_bytes = loaded.plan.arena_bytes
        if self._device.rows_that_fit(arena_bytes) == 0:
            text = f"the plan needs an arena of {arena_bytes} bytes; device.arena_bytes = {self._arena_bytes}"
            self._refuse_program(entry, text, is_passing=False)
            return
        if self._runs_better_in_pieces(entry, loaded):
            entry.enter(PlanState.REFUSED)
            entry.refusal = "a row takes so long that it runs op by op, in pieces, and others run in between"
            return
        entry.cost = RowCost()
        entry.enter(PlanState.LOADED)
        entry.loaded = loaded
        entry.refusal = ""

    def _runs_better_in_pieces(self, entry: ProgramEntry, loaded: LoadedPlan) -> bool:
        """Returns whether a row of a plan would hold up others for long. Only a processor runs one row at a time.

        Its ops are as large, so fusing them saves little; but they need more memory for their results.
        """
        info = self._device.info
        is_long = not info.is_gpu and loaded.plan.cost.estimate_ns >= LONG_ROW_NS
        return is_long and entry.program.all_bytes * _SHARE_OF_MEMORY <= info.memory_bytes

    def _taken(self, planned: Planned) -> Planned:
        """Counts a plan that the planner has made, and returns it."""
        self.trouble = ""
        self._counters.planned(
            planned.planning_ns, planned.compiling_ns, kernels=len(planned.binaries), compiled=planned.compiled
        )
        return planned

    def _note_refusal(self, lacking: str, text: str, *, is_passing: bool) -> None:
        log.warning("%s: %s", lacking, bounded_text(text))
        self._counters.plans_refused += 1
        self._counters.plan_refusals[OF_MACHINE if is_passing else OF_PROGRAM] += 1
        if is_passing:
            self.trouble = bounded_text(text)


def _pause_s(refusals: int) -> float:
    """Returns the pause after so many passing refusals."""
    return min(FIRST_PAUSE_S * 2.0 ** min(refusals - 1, 16), MOST_PAUSE_S)
