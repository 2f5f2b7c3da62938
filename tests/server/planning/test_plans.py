"""Which plans are asked for, for whom, and what becomes of programs whose plans do not come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from fusewire_kernels.devices.base import LoadedPlan
from fusewire_protos.errors import MOST_TEXT
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import build
from fusewire_server.device.orders import Load, Loaded
from fusewire_server.planning import plans
from fusewire_server.planning.planner import PlannerRefusal
from fusewire_server.planning.plans import MOST_PROGRAMS_WAITING, Plans
from fusewire_server.programs.counters import Counters
from fusewire_server.programs.program_table import PlanState, ProgramEntry
from tests.server.parts import chain, entry_of, op, session
from tests.server.world import InstantPlanner, WatchedDevice, planned, run, until


@dataclass
class World:
    """Plans between a planner that answers when told and a device that loads at once."""

    device: WatchedDevice = field(default_factory=WatchedDevice)
    planner: InstantPlanner = field(default_factory=InstantPlanner)
    retries: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.planner.withheld = []
        self.plans = Plans(self.planner, self.device, self.load, Counters(), 1 << 20, lambda: self.retries.append(True))

    def load(self, order: Load) -> None:
        loaded: LoadedPlan = self.device.load(order.plan, order.binaries)
        self.plans.loaded(Loaded(order.key, loaded))

    @property
    def asked(self) -> list[bytes]:
        return [raw for raw, _ in self.planner.requests]

    async def answer(self, index: int, refusal: str | None = None, *, is_passing: bool = False) -> None:
        assert self.planner.withheld is not None
        answer = self.planner.withheld[index]
        if refusal is None:
            answer.set_result(planned(self.asked[index]))
        else:
            answer.set_exception(PlannerRefusal(refusal, is_passing=is_passing))
        await called_back()


async def called_back() -> None:
    """Whatever awaits a future has been told of it."""
    await asyncio.sleep(0)


def held(*names: str) -> ProgramEntry:
    entry = entry_of(chain(names))
    entry.holders = 1
    return entry


def in_world(test: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def begin() -> None:
        await test(World())

    run(begin())


def test_equal_calls_of_several_programs_are_one_request() -> None:
    async def test(here: World) -> None:
        one, other = held("exp"), held("exp", "negative", "exp")
        here.plans.prepare_tier0(one, session("a"))
        here.plans.prepare_tier0(other, session("b"))
        assert len(here.asked) == 1
        await here.answer(0)
        assert not one.missing_calls | other.missing_calls
        assert list(one.one_ops.values()) == list(other.one_ops.values())

    in_world(test)


def test_a_program_whose_call_is_refused_cannot_run_and_rows_are_looked_at_again() -> None:
    async def test(here: World) -> None:
        entry = held("exp", "tanh")
        here.plans.prepare_tier0(entry, session())
        await here.answer(0, refusal="too long")
        assert not entry.missing_calls
        assert entry.fault is not None
        assert (entry.fault.case.name, "too long" in entry.fault.text) == ("server_fault", True)
        assert here.retries

    in_world(test)


def test_a_call_that_was_refused_is_asked_for_again_with_the_next_use() -> None:
    async def test(here: World) -> None:
        entry = held("exp")
        here.plans.prepare_tier0(entry, session())
        await here.answer(0, refusal="too long")
        here.plans.prepare_tier0(entry, session())
        assert (entry.fault, len(entry.missing_calls)) == (None, 1)
        await here.answer(1)
        assert (entry.fault, len(entry.missing_calls), len(entry.one_ops)) == (None, 0, 1)

    in_world(test)


def test_a_call_whose_plan_finds_no_arena_names_the_setting() -> None:
    async def test(here: World) -> None:
        here.device.arena_limit_bytes = -1
        entry = held("exp")
        here.plans.prepare_tier0(entry, session())
        await here.answer(0)
        assert entry.fault is not None
        assert (entry.fault.case.name, "device.arena_bytes" in entry.fault.text) == ("out_of_memory", True)

    in_world(test)


MANY = 1_000_000  # ops of a row


def test_a_row_of_very_many_ops_waits_for_its_plan_and_for_no_kernels_of_single_ops() -> None:
    async def test(here: World) -> None:
        entry, one = held("exp"), session()
        here.plans.plan(entry, one)
        here.plans.prepare_tier0(entry, one, MANY)
        assert (len(here.asked), bool(entry.missing_calls)) == (1, True)
        await here.answer(0)
        assert entry.loaded is not None

    in_world(test)


def test_a_plan_that_does_not_come_soon_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire_server.planning.plans.PLAN_FIRST_S", 0.0)

    async def test(here: World) -> None:
        entry, one = held("exp"), session()
        here.plans.plan(entry, one)
        here.plans.prepare_tier0(entry, one, MANY)
        await until(lambda: len(here.asked) == 2)
        await here.answer(1)
        assert (len(entry.missing_calls), len(entry.one_ops), here.retries) == (0, 1, [True])

    in_world(test)


def test_a_plan_that_is_refused_is_not_waited_for() -> None:
    async def test(here: World) -> None:
        entry, one = held("exp"), session()
        here.plans.plan(entry, one)
        here.plans.prepare_tier0(entry, one, MANY)
        await here.answer(0, refusal="too long")
        assert len(here.asked) == 2

    in_world(test)


def test_a_short_row_of_the_program_ends_the_wait_of_all_its_sessions() -> None:
    async def test(here: World) -> None:
        entry, one, other = held("exp"), session("a"), session("b")
        here.plans.plan(entry, one)
        here.plans.prepare_tier0(entry, one, MANY)
        here.plans.prepare_tier0(entry, other)
        assert len(here.asked) == 2
        here.plans.leave(other)
        await here.answer(1)
        assert (len(entry.missing_calls), entry.fault) == (0, None)

    in_world(test)


def test_a_row_of_very_many_ops_is_prepared_at_once_if_no_plan_is_on_its_way() -> None:
    async def test(here: World) -> None:
        entry = held("exp")
        here.plans.prepare_tier0(entry, session(), MANY)
        assert len(here.asked) == 1

    in_world(test)


def test_a_program_whose_plan_is_refused_stays_at_tier_0() -> None:
    async def test(here: World) -> None:
        entry = held("negative")
        here.plans.plan(entry, session())
        await here.answer(0, refusal="too long")
        assert (entry.state, entry.fault, entry.refusal) == (PlanState.REFUSED, None, "too long")

    in_world(test)


def test_a_program_that_a_full_disk_refused_is_planned_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "ASK_AGAIN_S", 0.0)

    async def test(here: World) -> None:
        entry = held("negative")
        here.plans.plan(entry, session())
        await here.answer(0, refusal="no space", is_passing=True)
        assert here.plans.trouble == "no space"
        await until(lambda: entry.state is PlanState.UNPLANNED)
        here.plans.plan(entry, session())
        await here.answer(1)
        assert (entry.state, entry.refusal, here.plans.trouble) == (PlanState.LOADED, "", "")

    in_world(test)


def test_why_a_plan_is_refused_is_kept_and_told_within_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    async def test(here: World) -> None:
        entry = held("negative")
        here.plans.plan(entry, session())
        await here.answer(0, refusal="x" * 10 * MOST_TEXT)
        assert (len(entry.refusal), entry.refusal.endswith("characters)")) == (MOST_TEXT, True)
        assert len(caplog.messages[-1]) < 2 * MOST_TEXT

    in_world(test)


def test_what_sessions_waited_for_that_have_ended_is_asked_for_anew_by_the_next() -> None:
    async def test(here: World) -> None:
        entry, one, other = held("exp"), session("a"), session("b")
        here.plans.plan(entry, one)
        here.plans.prepare_tier0(entry, one)
        here.plans.prepare_tier0(entry, other)
        here.plans.leave(one)
        await called_back()
        assert (entry.state, entry.has_begun_preparing) == (PlanState.UNPLANNED, True)
        here.plans.leave(other)
        await called_back()
        assert (entry.has_begun_preparing, entry.missing_calls) == (False, set())
        here.plans.prepare_tier0(entry, session("c"))
        await here.answer(2)
        assert len(entry.one_ops) == 1

    in_world(test)


def test_who_comes_just_after_the_last_session_left_is_served() -> None:
    async def test(here: World) -> None:
        entry, one = held("exp"), session("a")
        here.plans.prepare_tier0(entry, one)
        here.plans.leave(one)
        here.plans.prepare_tier0(entry, session("b"))
        await called_back()
        await here.answer(1)
        assert (len(entry.missing_calls), len(entry.one_ops)) == (0, 1)

    in_world(test)


def test_a_program_used_just_after_its_last_session_left_is_planned() -> None:
    async def test(here: World) -> None:
        entry, one = held("negative"), session("a")
        here.plans.plan(entry, one)
        here.plans.leave(one)
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
        here.plans.leave(one)
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


def test_other_work_comes_between_the_calls_of_a_long_program() -> None:
    async def test(here: World) -> None:
        inputs = [Spec(dtypes.float32, (dim,)) for dim in range(1, 201)]
        entry = entry_of(build(inputs, (), [op("exp", index) for index in range(200)], (0,)))
        asked = []
        here.plans.prepare_tier0(entry, session())
        while len(here.asked) < 200:
            asked.append(len(here.asked))
            await called_back()
        assert len(asked) > 2
        for index in range(200):
            assert entry.missing_calls
            await here.answer(index)
        assert (len(entry.missing_calls), len(entry.one_ops)) == (0, 200)

    in_world(test)


def test_a_session_has_a_bounded_number_of_calls_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire_server.planning.plans.MOST_CALLS_WAITING", 2)

    async def test(here: World) -> None:
        one, entry = session(), held("sin", "cos")
        here.plans.prepare_tier0(held("exp", "log", "tanh"), one)  # with nothing waiting one of any size may go
        here.plans.prepare_tier0(entry, one)
        assert entry.fault is not None
        assert (entry.fault.case.name, "at most 2" in entry.fault.text) == ("server_fault", True)
        here.plans.prepare_tier0(entry, session("b"))
        assert entry.fault is None

    in_world(test)
