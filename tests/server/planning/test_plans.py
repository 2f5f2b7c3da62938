"""Which plans are asked for, for whom, and what becomes of programs and kernels whose plans do not come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.errors import MOST_TEXT, OutOfMemory
from fusewire_protos.programs.codec import encode
from fusewire_server.device.orders import Lacks, Load, Loaded, NoKernel, Unloadable
from fusewire_server.planning.planner import PlannerRefusal
from fusewire_server.planning.plans import MOST_PAUSE_S, MOST_PROGRAMS_WAITING, Plans
from fusewire_server.programs.counters import Counters
from fusewire_server.programs.program_table import PlanState, ProgramEntry
from fusewire_server.sessions.session import Session, SessionState
from tests.server.parts import EXP, VECTOR, call_of, chain, entry_of, session
from tests.server.world import InstantPlanner, WatchedDevice, planned

TANH = call_of("tanh", VECTOR)


class PausedLoop(asyncio.SelectorEventLoop):
    """An event loop whose pauses end when told."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[tuple[float, Callable[[], object]]] = []

    def call_later(  # type: ignore[override]  # the type of its arguments is not kept
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.pauses.append((delay, lambda: callback(*args)))
        return asyncio.TimerHandle(delay, callback, args, self, context)


@dataclass
class World:
    """Plans between a planner that answers when told, a device that loads at once, and pauses that end when told."""

    loop: PausedLoop
    has_planner: bool = True
    device: WatchedDevice = field(default_factory=WatchedDevice)
    planner: InstantPlanner = field(default_factory=partial(InstantPlanner, withholds=True))
    loaded: list[object] = field(default_factory=list)
    no_kernels: list[NoKernel] = field(default_factory=list)

    def __post_init__(self) -> None:
        planner = self.planner if self.has_planner else None
        self.plans = Plans(planner, self.device, self.act, Counters(), 1 << 20)

    def act(self, order: Load | NoKernel) -> None:
        """What the device thread does with an order."""
        if isinstance(order, NoKernel):
            self.no_kernels.append(order)
            return
        try:
            loaded = self.device.load(order.plan, order.binaries)
        except OutOfMemory as error:
            self.plans.take(Unloadable(order.key, str(error)))
            return
        self.loaded.append(order.key)
        self.plans.take(Loaded(order.key, loaded))

    def lack(self, *sessions: Session, calls: tuple[OneOpCall, ...] = (EXP,)) -> None:
        """Rows of these sessions wait for kernels."""
        self.plans.take(Lacks(frozenset(calls), frozenset(sessions)))

    @property
    def asked(self) -> list[bytes]:
        return [raw for raw, _ in self.planner.requests]

    async def answer(self, index: int, refusal: str | None = None, *, is_passing: bool = False) -> None:
        answer = self.planner.made[index].answer
        if refusal is None:
            answer.set_result(planned(self.asked[index]))
        else:
            answer.set_exception(PlannerRefusal(refusal, is_passing=is_passing))
        await called_back()

    async def refuse_newest(self, text: str = "no space") -> None:
        """The machine is to blame for it."""
        await self.answer(len(self.asked) - 1, refusal=text, is_passing=True)

    def end_pause(self) -> float:
        """The one pause ends; how long it was."""
        ((delay_s, go_on),) = self.loop.pauses
        self.loop.pauses.clear()
        go_on()
        return delay_s

    def waits(self) -> list[tuple[str, tuple[bytes, ...], str]]:
        waits = self.plans.waits()
        return [(wait.op, tuple(sorted(one.session_id for one in wait.sessions)), wait.refusal) for wait in waits]


async def called_back() -> None:
    """Whatever awaits a future has been told of it."""
    await asyncio.sleep(0)


def held(*names: str) -> ProgramEntry:
    entry = entry_of(chain(names))
    entry.holders = 1
    return entry


def ended(name: str) -> Session:
    one = session(name)
    one.state = SessionState.CLOSED
    return one


def in_world(test: Callable[[World], Coroutine[Any, Any, None]], *, has_planner: bool = True) -> None:
    loop = PausedLoop()

    async def begin() -> None:
        await test(World(loop, has_planner))

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(begin())


# ---- kernels that rows wait for ----


def test_a_kernel_that_rows_of_several_sessions_wait_for_is_one_request_in_the_name_of_all() -> None:
    async def test(here: World) -> None:
        one, other, third = session("a"), session("b"), session("c")
        here.lack(one, other)
        here.lack(third)
        assert here.planner.requests == [(encode(EXP.program()), True)]
        assert [here.planner.waiting(each, is_urgent=True) for each in (one, other, third)] == [1, 1, 1]
        await here.answer(0)
        assert here.loaded == [EXP]

    in_world(test)


def test_each_kernel_that_is_missing_is_a_request_of_its_own() -> None:
    async def test(here: World) -> None:
        here.lack(session(), calls=(EXP, TANH))
        assert {*here.asked} == {encode(EXP.program()), encode(TANH.program())}
        await here.answer(0)
        await here.answer(1)
        assert {*here.loaded} == {EXP, TANH}

    in_world(test)


def test_what_rows_wait_for_is_told_with_their_sessions_until_it_has_come() -> None:
    async def test(here: World) -> None:
        before_ns = time.monotonic_ns()
        here.lack(session("b"), session("a"))
        assert here.waits() == [("exp", (b"a", b"b"), "")]
        (wait,) = here.plans.waits()
        assert before_ns <= wait.since_ns <= time.monotonic_ns()
        await here.answer(0)
        assert here.waits() == []

    in_world(test)


def test_a_kernel_that_the_machine_refused_is_asked_for_again_after_a_pause() -> None:
    async def test(here: World) -> None:
        here.lack(session())
        since_ns = here.plans.waits()[0].since_ns
        await here.refuse_newest("no space")
        assert here.waits() == [("exp", (b"a",), "no space")]
        assert (len(here.asked), here.plans.trouble) == (1, "no space")
        here.end_pause()
        assert (len(here.asked), here.plans.waits()[0].since_ns) == (2, since_ns)
        await here.answer(1)
        assert (here.loaded, here.no_kernels, here.plans.trouble) == ([EXP], [], "")

    in_world(test)


def test_the_pauses_grow_up_to_a_bound_and_no_row_fails() -> None:
    async def test(here: World) -> None:
        here.lack(session())
        pauses_s = []
        for _ in range(8):
            await here.refuse_newest()
            pauses_s.append(here.end_pause())
        assert pauses_s == [1, 2, 4, 8, 16, MOST_PAUSE_S, MOST_PAUSE_S, MOST_PAUSE_S]
        assert here.no_kernels == []
        await here.answer(8)
        assert here.loaded == [EXP]

    in_world(test)


def test_the_pauses_of_the_next_wait_are_short_again() -> None:
    async def test(here: World) -> None:
        here.lack(session())
        await here.refuse_newest()
        here.end_pause()
        await here.refuse_newest()
        here.end_pause()
        await here.answer(2)
        here.lack(session())
        await here.refuse_newest()
        assert here.end_pause() == 1

    in_world(test)


def test_a_session_that_comes_during_the_pause_waits_for_the_same_request() -> None:
    async def test(here: World) -> None:
        one, other = session("a"), session("b")
        here.lack(one)
        await here.refuse_newest()
        here.lack(other)
        assert (len(here.asked), here.waits()) == (1, [("exp", (b"a", b"b"), "no space")])
        here.end_pause()
        assert len(here.asked) == 2
        assert [here.planner.waiting(each, is_urgent=True) for each in (one, other)] == [2, 1]

    in_world(test)


def test_a_kernel_that_the_device_cannot_load_is_asked_for_again() -> None:
    async def test(here: World) -> None:
        here.device.load_fault = OutOfMemory("no room for the code")
        here.lack(session())
        await here.answer(0)
        assert here.waits() == [("exp", (b"a",), "no room for the code")]
        here.device.load_fault = None
        here.end_pause()
        await here.answer(1)
        assert (here.loaded, here.waits(), here.no_kernels) == ([EXP], [], [])

    in_world(test)


def test_a_kernel_that_its_op_made_impossible_is_told_and_not_asked_for_again() -> None:
    async def test(here: World) -> None:
        here.lack(session(), calls=(EXP, TANH))
        await here.answer(here.asked.index(encode(EXP.program())), refusal="too deep")
        assert here.no_kernels == [NoKernel(EXP, "too deep")]
        assert (here.waits(), here.loop.pauses, here.plans.trouble) == ([("tanh", (b"a",), "")], [], "")

    in_world(test)


def test_a_final_refusal_after_passing_ones_ends_the_wait() -> None:
    async def test(here: World) -> None:
        here.lack(session())
        await here.refuse_newest()
        here.end_pause()
        await here.answer(1, refusal="too deep")
        assert (here.no_kernels, here.waits(), here.loop.pauses) == ([NoKernel(EXP, "too deep")], [], [])

    in_world(test)


def test_why_a_kernel_does_not_come_is_told_within_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    async def test(here: World) -> None:
        here.lack(session())
        await here.refuse_newest("x" * 10 * MOST_TEXT)
        assert len(here.plans.waits()[0].refusal) == MOST_TEXT
        assert caplog.messages[-1].startswith("no kernel for exp: xxx")
        assert len(caplog.messages[-1]) < 2 * MOST_TEXT

    in_world(test)


def test_a_server_that_compiles_nothing_says_so_at_once() -> None:
    async def test(here: World) -> None:
        here.lack(session())
        assert (here.no_kernels, here.waits()) == ([NoKernel(EXP, "this server compiles nothing")], [])

    in_world(test, has_planner=False)


# ---- sessions that end while their rows wait ----


def test_the_rows_of_a_session_that_ends_are_let_go_and_others_wait_on() -> None:
    async def test(here: World) -> None:
        one, other = session("a"), session("b")
        here.lack(one, other)
        here.plans.remove_session(one)
        assert (here.no_kernels, here.waits()) == ([NoKernel(EXP, "")], [("exp", (b"b",), "")])
        await here.answer(0)
        assert here.loaded == [EXP]

    in_world(test)


def test_a_session_that_ends_during_a_pause_is_asked_for_no_more() -> None:
    async def test(here: World) -> None:
        one, other = session("a"), session("b")
        here.lack(one, other)
        await here.refuse_newest()
        here.plans.remove_session(one)
        assert here.no_kernels == [NoKernel(EXP, "")]
        here.end_pause()
        assert [here.planner.waiting(each, is_urgent=True) for each in (one, other)] == [0, 2]

    in_world(test)


def test_a_request_that_no_session_waits_for_any_more_is_withdrawn() -> None:
    async def test(here: World) -> None:
        one, other = session("a"), session("b")
        here.lack(one, other)
        for each in (one, other):
            here.plans.remove_session(each)
        await called_back()
        assert here.planner.made[0].answer.cancelled()
        assert (here.waits(), here.loop.pauses, len(here.asked)) == ([], [], 1)
        assert here.no_kernels == [NoKernel(EXP, "")] * 2

    in_world(test)


def test_nothing_is_asked_for_after_a_pause_that_all_sessions_have_left() -> None:
    async def test(here: World) -> None:
        one = session()
        here.lack(one)
        await here.refuse_newest()
        here.plans.remove_session(one)
        here.end_pause()
        assert (len(here.asked), here.waits(), here.no_kernels) == (1, [], [NoKernel(EXP, "")])

    in_world(test)


def test_a_session_that_waits_for_no_kernel_leaves_those_of_others_alone() -> None:
    async def test(here: World) -> None:
        here.lack(session("a"))
        here.plans.remove_session(session("b"))
        assert (here.no_kernels, here.waits()) == ([], [("exp", (b"a",), "")])

    in_world(test)


def test_who_comes_just_after_the_last_session_left_is_served() -> None:
    async def test(here: World) -> None:
        one = session("a")
        here.lack(one)
        here.plans.remove_session(one)
        here.lack(session("b"))
        await called_back()
        await here.answer(1)
        assert (here.loaded, here.waits()) == ([EXP], [])

    in_world(test)


def test_who_comes_in_the_pause_that_the_last_session_left_is_asked_for_at_once_and_once() -> None:
    async def test(here: World) -> None:
        one = session("a")
        here.lack(one)
        await here.refuse_newest()
        here.plans.remove_session(one)
        here.lack(session("b"))
        assert len(here.asked) == 2
        here.end_pause()
        assert (len(here.asked), here.waits()) == (2, [("exp", (b"b",), "")])

    in_world(test)


def test_a_kernel_for_sessions_that_have_ended_meanwhile_is_not_asked_for() -> None:
    async def test(here: World) -> None:
        here.lack(ended("a"))
        assert (here.asked, here.no_kernels, here.waits()) == ([], [NoKernel(EXP, "")], [])

    in_world(test)


def test_a_kernel_is_not_asked_for_in_the_name_of_a_session_that_has_ended_meanwhile() -> None:
    async def test(here: World) -> None:
        one, other = ended("a"), session("b")
        here.lack(one, other)
        assert [here.planner.waiting(each, is_urgent=True) for each in (one, other)] == [0, 1]
        assert here.waits() == [("exp", (b"b",), "")]

    in_world(test)


# ---- programs ----


def test_a_program_whose_plan_is_refused_stays_at_tier_0() -> None:
    async def test(here: World) -> None:
        entry = held("negative")
        here.plans.plan(entry, session())
        await here.answer(0, refusal="too long")
        assert (entry.state, entry.refusal, here.loop.pauses) == (PlanState.REFUSED, "too long", [])
        here.plans.plan(entry, session())
        assert len(here.asked) == 1

    in_world(test)


def test_a_program_that_a_full_disk_refused_is_planned_when_it_is_used_after_a_pause() -> None:
    async def test(here: World) -> None:
        entry = held("negative")
        here.plans.plan(entry, session())
        await here.refuse_newest("no space")
        assert (entry.state, here.plans.trouble) == (PlanState.REFUSED, "no space")
        here.plans.plan(entry, session())
        assert len(here.asked) == 1
        here.end_pause()
        assert entry.state is PlanState.UNPLANNED
        here.plans.plan(entry, session())
        await here.answer(1)
        assert (entry.state, entry.refusal, here.plans.trouble) == (PlanState.LOADED, "", "")

    in_world(test)


def test_the_pauses_of_a_program_grow_up_to_a_bound() -> None:
    async def test(here: World) -> None:
        entry, pauses_s = held("negative"), []
        for _ in range(7):
            here.plans.plan(entry, session())
            await here.refuse_newest()
            pauses_s.append(here.end_pause())
        assert pauses_s == [1, 2, 4, 8, 16, MOST_PAUSE_S, MOST_PAUSE_S]

    in_world(test)


def test_a_program_whose_plan_the_device_cannot_load_is_planned_later() -> None:
    async def test(here: World) -> None:
        here.device.load_fault = OutOfMemory("no room for the code")
        entry = held("negative")
        here.plans.plan(entry, session())
        await here.answer(0)
        assert (entry.state, entry.refusal) == (PlanState.REFUSED, "no room for the code")
        here.end_pause()
        here.device.load_fault = None
        here.plans.plan(entry, session())
        await here.answer(1)
        assert entry.state is PlanState.LOADED

    in_world(test)


def test_a_program_whose_arena_never_fits_names_the_setting_and_is_not_planned_again() -> None:
    async def test(here: World) -> None:
        here.device.arena_limit_bytes = -1
        entry = held("negative")
        here.plans.plan(entry, session())
        await here.answer(0)
        assert (entry.state, entry.loaded, here.loop.pauses) == (PlanState.REFUSED, None, [])
        assert "device.arena_bytes" in entry.refusal

    in_world(test)


def test_why_a_plan_is_refused_is_kept_and_told_within_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    async def test(here: World) -> None:
        entry = held("negative")
        here.plans.plan(entry, session())
        await here.answer(0, refusal="x" * 10 * MOST_TEXT)
        assert (len(entry.refusal), entry.refusal.endswith("characters)")) == (MOST_TEXT, True)
        assert len(caplog.messages[-1]) < 2 * MOST_TEXT

    in_world(test)


def test_fragments_are_planned_behind_loops_that_come_later() -> None:
    async def test(here: World) -> None:
        one, fragment, loop = session(), held("negative"), held("exp")
        fragment.is_fragment = True
        loop.is_fragment = False
        for entry in (fragment, loop):
            here.plans.plan(entry, one)
        turns = here.planner._usual.turns
        assert [turns.take(), turns.take()] == [here.planner.made[1], here.planner.made[0]]

    in_world(test)


def test_a_program_used_just_after_its_last_session_left_is_planned() -> None:
    async def test(here: World) -> None:
        entry, one = held("negative"), session("a")
        here.plans.plan(entry, one)
        here.plans.remove_session(one)
        here.plans.plan(entry, session("b"))
        await called_back()
        states = [entry.state]
        await here.answer(1)
        assert [*states, entry.state] == [PlanState.PLANNING, PlanState.LOADED]

    in_world(test)


def test_a_program_that_nobody_holds_at_its_turn_is_not_wanted() -> None:
    async def test(here: World) -> None:
        entry = held("negative")
        here.plans.plan(entry, session())
        (request,) = here.planner.made
        assert request.is_wanted()
        entry.holders = 0
        assert not request.is_wanted()

    in_world(test)


def test_a_program_that_another_session_uses_meanwhile_is_asked_for_in_its_name_too() -> None:
    async def test(here: World) -> None:
        entry, one, other = held("negative"), session("a"), session("b")
        here.plans.plan(entry, one)
        here.plans.plan(entry, other)
        assert (len(here.asked), here.planner.waiting(other, is_urgent=False)) == (1, 1)
        here.plans.remove_session(one)
        await here.answer(0)
        assert entry.state is PlanState.LOADED

    in_world(test)


def test_a_session_has_a_bounded_number_of_programs_planned_and_the_rest_later() -> None:
    async def test(here: World) -> None:
        one = session()
        entries = [held("negative") for _ in range(MOST_PROGRAMS_WAITING + 1)]
        for entry in entries:
            here.plans.plan(entry, one)
        assert [entry.state for entry in entries].count(PlanState.UNPLANNED) == 1
        here.plans.plan(entries[-1], session("b"))
        assert entries[-1].state is PlanState.PLANNING

    in_world(test)


def test_a_program_that_only_ended_sessions_used_is_asked_for_anew_by_the_next() -> None:
    async def test(here: World) -> None:
        entry, one = held("negative"), session("a")
        here.plans.plan(entry, one)
        here.plans.remove_session(one)
        await called_back()
        states = [entry.state]
        here.plans.plan(entry, session("b"))
        await here.answer(1)
        assert [*states, entry.state] == [PlanState.UNPLANNED, PlanState.LOADED]

    in_world(test)
