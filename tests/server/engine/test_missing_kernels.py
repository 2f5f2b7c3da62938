"""Rows whose kernels nobody has compiled yet: they wait, and only what truly cannot be compiled fails."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_kernels.devices.base import DeviceInfo
from fusewire_kernels.devices.null import NullPlan
from fusewire_kernels.plan.plan import InputColumn, OutputColumn
from fusewire_kernels.unfused.twins import host_array
from fusewire_protos import frames
from fusewire_protos.frames import Fetch, Segment
from fusewire_protos.programs.program import Program, build
from fusewire_server.device.unfused.iteration import Iteration
from fusewire_server.planning.planner import PlannerRefusal
from fusewire_server.programs.program_table import PlanState
from fusewire_server.sessions.tables.answers import Answer
from tests.segments import loop_of
from tests.server.parts import VECTOR, chain, new, op, segment
from tests.server.world import (
    NEGATE,
    Client,
    InstantPlanner,
    WatchedDevice,
    World,
    columns,
    planned,
    run,
    until,
    world,
)

EXP, MIXED, LOOP = 4, 5, 6  # numbers of programs
NEGATIVES = [-0.0, -1.0, -2.0, -3.0]
EXPONENTIALS = np.exp(np.arange(4, dtype=np.float32)).tolist()


class ExpDevice(WatchedDevice):
    """Has a compiler, so that only exact ops run by their twins. Each launch is of an exponential."""

    @property
    def info(self) -> DeviceInfo:
        return super().info._replace(dialect="c", has_compiler=True)

    def launch_iteration(self, loaded: NullPlan, slots: npt.NDArray[np.int64]) -> None:
        super().launch_iteration(loaded, slots)
        for row in slots:
            (source,), (result,) = columns(loaded.plan, InputColumn), columns(loaded.plan, OutputColumn)
            host_array(int(row[result]), VECTOR)[...] = np.exp(host_array(int(row[source]), VECTOR))


class WithheldPlanner(InstantPlanner):
    """Answers when told: what rows wait for apart from the plans of programs."""

    def __init__(self) -> None:
        super().__init__(withholds=True)

    def urgent(self) -> list[int]:
        return [index for index, (_, is_urgent) in enumerate(self.requests) if is_urgent]

    async def asked_urgently(self, times: int) -> None:
        await until(lambda: len(self.urgent()) == times)

    def give_newest_kernel(self) -> None:
        request = self.made[self.urgent()[-1]]
        request.answer.set_result(planned(request.raw))

    def refuse_newest_kernel(self, text: str, *, is_passing: bool = False) -> None:
        self.made[self.urgent()[-1]].answer.set_exception(PlannerRefusal(text, is_passing=is_passing))


def mixed() -> Program:
    """A vector in; its negative, its exponential, their sum, and the negative of that out."""
    ops = [op("negative", 0), op("exp", 0), op("add", 1, 2), op("negative", 3)]
    return build([VECTOR], [], ops, range(4))


def flipping() -> Program:
    """x = -x."""
    return build([VECTOR], [], [op("negative", 0)], (0,), [(0, 1)])


PROGRAMS = frames.encode_programs([new(EXP, chain(("exp",))), new(MIXED, mixed()), new(LOOP, flipping())])


def opened(here: World, name: str = "a") -> Client:
    """A session that has numbered these programs too."""
    client = here.client(name)
    client.send(programs=PROGRAMS)
    return client


async def ask_for_exp(client: Client, planner: WithheldPlanner) -> None:
    """Uses the exponential, and waits until its kernel is asked for."""
    client.send(segment(EXP, 100, 10), Fetch(1, 100))
    await planner.asked_urgently(1)


def failure_of(answer: Answer) -> tuple[str, str]:
    assert answer.failure is not None
    return answer.failure.case.name, answer.failure.text


def waiting(client: Client) -> bool:
    return client.session.admitted != client.session.completed


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire_server.planning.plans.FIRST_PAUSE_S", 0.0)


@dataclass
class Expecting:
    """A client that knows the values that it must be answered."""

    client: Client
    expected: dict[int, list[float]] = field(default_factory=dict)  # by fetch

    def use(self, program: int, results: dict[int, list[float]]) -> None:
        """Runs a program on the upload, and fetches the results of some of its ops."""
        base = 100 + 10 * len(self.expected)
        self.client.send(segment(program, base, 10))
        for op_index, value in results.items():
            fetch = len(self.expected) + 1
            self.expected[fetch] = value
            self.client.send(Fetch(fetch, base + op_index))

    def is_answered(self) -> bool:
        return self.client.collect().keys() == self.expected.keys()

    async def check(self) -> None:
        for fetch, value in self.expected.items():
            assert await self.client.value(fetch) == value


def has_open(planner: WithheldPlanner) -> bool:
    """Whether rows wait for an answer."""
    return any(not planner.made[index].answer.done() for index in planner.urgent())


def settle_all(planner: WithheldPlanner, *, is_passing_refusal: bool) -> bool:
    """Answers all that rows wait for. Returns true, for use in a condition."""
    for index in planner.urgent():
        request = planner.made[index]
        if not request.answer.done():
            if is_passing_refusal:
                request.answer.set_exception(PlannerRefusal("no space", is_passing=True))
            else:
                request.answer.set_result(planned(request.raw))
    return True


USES = {
    "exp": (EXP, {0: EXPONENTIALS}),
    "mixed": (MIXED, {0: NEGATIVES, 1: EXPONENTIALS}),
    "negate": (NEGATE, {0: NEGATIVES}),
}
KINDS = (*USES, "give", "refuse", "end")


@dataclass
class Schedule:
    """Clients that use kernels while the planner refuses, gives, and is left waiting."""

    here: World
    planner: WithheldPlanner
    clients: list[Expecting] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clients = [self.opened() for _ in range(3)]

    def opened(self) -> Expecting:
        return Expecting(opened(self.here))

    async def step(self, kind: str, index: int) -> None:
        if kind in USES:
            self.clients[index].use(*USES[kind])
        elif kind == "end":
            self.here.engine.end(self.clients[index].client.session)
            self.clients[index] = self.opened()
        else:
            await until(lambda: has_open(self.planner) or self.is_answered())
            settle_all(self.planner, is_passing_refusal=kind == "refuse")

    def is_answered(self) -> bool:
        return all(each.is_answered() for each in self.clients)

    async def finish(self) -> None:
        """Gives all kernels, and checks all values."""
        await until(lambda: settle_all(self.planner, is_passing_refusal=False) and self.is_answered())
        for each in self.clients:
            await each.check()


@settings(max_examples=60)
@given(steps=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2)), max_size=40))
def test_whatever_is_refused_for_a_while_and_whoever_leaves_each_value_comes_and_is_right(
    steps: list[tuple[str, int]],
) -> None:
    async def test() -> None:
        planner = WithheldPlanner()
        async with world(ExpDevice(), planner, credit_segments=1000) as here:
            schedule = Schedule(here, planner)
            for kind, index in steps:
                await schedule.step(kind, index)
            await schedule.finish()
            assert here.engine.counters.failures.keys() <= {"cancelled"}  # rows of sessions that ended

    run(test())


def test_rows_wait_for_a_kernel_through_passing_refusals_and_then_give_the_right_value() -> None:
    async def test() -> None:
        planner = WithheldPlanner()
        async with world(ExpDevice(), planner) as here:
            client = opened(here)
            await ask_for_exp(client, planner)
            for times in (2, 3, 4):
                planner.refuse_newest_kernel("no space", is_passing=True)
                await planner.asked_urgently(times)
            assert waiting(client)
            planner.give_newest_kernel()
            assert await client.value(1) == EXPONENTIALS
            assert here.engine.counters.failures == {}

    run(test())


def test_a_kernel_that_has_come_serves_later_rows_of_other_programs_too() -> None:
    async def test() -> None:
        planner = WithheldPlanner()
        async with world(ExpDevice(), planner) as here:
            client = opened(here)
            await ask_for_exp(client, planner)
            planner.give_newest_kernel()
            assert await client.value(1) == EXPONENTIALS
            client.send(segment(MIXED, 200, 10), Fetch(2, 201))
            assert await client.value(2) == EXPONENTIALS
            assert len(planner.urgent()) == 1

    run(test())


def test_an_op_that_can_never_be_compiled_fails_only_what_depends_on_it_and_by_its_name() -> None:
    async def test() -> None:
        planner = WithheldPlanner()
        async with world(ExpDevice(), planner) as here:
            client = opened(here)
            fetches = [Fetch(index + 1, 100 + index) for index in range(4)]
            client.send(segment(MIXED, 100, 10), *fetches)
            await planner.asked_urgently(1)
            planner.refuse_newest_kernel("too deep")
            assert await client.value(1) == NEGATIVES
            failures = {failure_of(await client.fetched(fetch)) for fetch in (2, 3, 4)}
            assert failures == {("server_fault", "op 1 exp: no kernel for exp: too deep")}
            client.send(segment(NEGATE, 200, 100), Fetch(5, 200))
            assert await client.value(5) == [0.0, 1.0, 2.0, 3.0]

    run(test())


def test_a_row_that_reads_what_can_never_be_computed_gives_its_other_results() -> None:
    async def test() -> None:
        planner = WithheldPlanner()
        both = build([VECTOR, VECTOR], [], [op("negative", 0), op("negative", 1)], (0, 1))
        async with world(ExpDevice(), planner) as here:
            here.engine.hold()
            client = here.client()
            client.send(
                segment(EXP, 100, 10),
                segment(9, 200, 10, 100),
                Fetch(1, 200),
                Fetch(2, 201),
                programs=frames.encode_programs([new(EXP, chain(["exp"])), new(9, both)]),
            )
            here.engine.unhold()
            await planner.asked_urgently(1)
            planner.refuse_newest_kernel("it cannot be")
            assert await client.value(1) == [0.0, -1.0, -2.0, -3.0]
            assert await client.failure(2) == "server_fault"

    run(test())


def test_an_op_that_can_never_be_compiled_is_not_asked_for_again() -> None:
    async def test() -> None:
        planner = WithheldPlanner()
        async with world(ExpDevice(), planner) as here:
            client = opened(here)
            await ask_for_exp(client, planner)
            planner.refuse_newest_kernel("too deep")
            assert await client.failure(1) == "server_fault"
            client.send(segment(EXP, 200, 10), Fetch(2, 200))
            assert await client.failure(2) == "server_fault"
            assert len(planner.urgent()) == 1

    run(test())


def test_rows_that_wait_for_a_kernel_hold_up_no_other_session() -> None:
    async def test() -> None:
        planner = WithheldPlanner()
        async with world(ExpDevice(), planner) as here:
            one, other = opened(here, "a"), opened(here, "b")
            await ask_for_exp(one, planner)
            one.send(segment(NEGATE, 200, 100), Fetch(2, 200))
            for fetch in range(1, 6):
                other.send(segment(NEGATE, 100 + fetch, 10), Fetch(fetch, 100 + fetch))
                assert await other.value(fetch) == NEGATIVES
            assert waiting(one)
            planner.give_newest_kernel()
            assert await one.value(2) == np.negative(EXPONENTIALS).tolist()

    run(test())


def test_rows_of_several_sessions_wait_for_one_kernel_though_one_of_them_ends() -> None:
    async def test() -> None:
        planner = WithheldPlanner()
        async with world(ExpDevice(), planner) as here:
            one, other = opened(here, "a"), opened(here, "b")
            for client in (one, other):
                client.send(segment(EXP, 100, 10), Fetch(1, 100))
            await until(
                lambda: planner.urgent() and all(planner.waiting(each.session, is_urgent=True) for each in (one, other))
            )
            here.engine.end(one.session)
            planner.give_newest_kernel()
            assert await other.value(1) == EXPONENTIALS
            assert len(planner.urgent()) == 1

    run(test())


def test_a_session_that_ends_waits_for_no_kernel_and_no_plan_and_holds_no_memory() -> None:
    async def test() -> None:
        planner = WithheldPlanner()
        async with world(ExpDevice(), planner) as here:
            client = opened(here)
            await ask_for_exp(client, planner)
            here.engine.end(client.session)
            assert len(planner.made) == 2
            assert all(request.answer.cancelled() for request in planner.made)
            await until(lambda: here.device.live_bytes == 0)

    run(test())


def test_rows_that_wait_for_a_kernel_do_not_see_it_refused_because_the_device_has_no_room_now() -> None:
    async def test() -> None:
        planner, device = WithheldPlanner(), ExpDevice()
        async with world(device, planner) as here:
            client = opened(here)
            await ask_for_exp(client, planner)
            device.load_fault = OSError("too many open files")
            planner.give_newest_kernel()
            await planner.asked_urgently(2)
            device.load_fault = None
            planner.give_newest_kernel()
            assert await client.value(1) == EXPONENTIALS

    run(test())


def test_a_long_loop_asks_for_its_plan_again_after_a_passing_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    iterations, gate, go_on = 40, threading.Event(), Iteration.go_on
    monkeypatch.setattr("fusewire_server.scheduling.coalescer.MOST_ITERATIONS", 2)
    monkeypatch.setattr(Iteration, "go_on", lambda one, until_ns: gate.is_set() and go_on(one, until_ns))

    async def test() -> None:
        planner = WithheldPlanner()
        async with world(planner=planner) as here:
            client = opened(here)
            loop = loop_of(Segment(LOOP, 100, (10,), (), (), ()), iterations, 1, (1,))
            client.send(loop, Fetch(1, 100 + iterations - 1))
            (request,) = planner.made
            request.answer.set_exception(PlannerRefusal("no space", is_passing=True))
            await until(lambda: client.session.programs[LOOP].state is PlanState.UNPLANNED)
            gate.set()
            await until(lambda: len(planner.made) == 2)
            assert planner.made[1].raw == request.raw
            assert await client.value(1) == [0.0, 1.0, 2.0, 3.0]

    try:
        run(test())
    finally:
        gate.set()
