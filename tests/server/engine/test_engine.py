"""The engine on a real loop and real threads, with a device that computes at tier 0 and only looks on at tier 1."""

from __future__ import annotations

import threading

import pytest

from fusewire_protos import frames
from fusewire_protos.frames import Fetch
from fusewire_server.device.orders import Brought, Unloadable
from fusewire_server.device.unfused.iteration import Iteration
from fusewire_server.planning.planner import PlannerRefusal
from fusewire_server.programs.program_table import PlanState
from fusewire_server.sessions.session import PendingFetch
from tests.server.parts import chain, new, segment
from tests.server.world import DATA, NEGATE, InstantPlanner, WatchedDevice, load, planned, run, until, world

# ---- coalescing ----


def test_sessions_that_wait_at_the_same_program_are_rows_of_one_submission() -> None:
    async def test() -> None:
        async with world() as here:
            here.engine.hold()
            clients = [here.client(str(index)) for index in range(8)]
            for client in clients:
                client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            here.engine.unhold()
            values = [await client.value(1) for client in clients]
            assert values == [[-0.0, -1.0, -2.0, -3.0]] * 8
            assert dict(here.engine.counters.rows_per_submission) == {8: 1}

    run(test())


def test_rows_that_come_in_one_turn_of_the_event_loop_share_a_submission() -> None:
    async def test() -> None:
        async with world() as here:
            clients = [here.client(str(index)) for index in range(8)]
            for client in clients:
                client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            values = [await client.value(1) for client in clients]
            assert values == [[-0.0, -1.0, -2.0, -3.0]] * 8
            assert dict(here.engine.counters.rows_per_submission) == {8: 1}

    run(test())


def test_at_tier_1_they_are_rows_of_one_launch() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            clients = [here.client(str(index)) for index in range(8)]
            await load(here, clients[0])
            here.engine.hold()
            for client in clients:
                client.send(segment(NEGATE, 100, 10))
            here.engine.unhold()
            for client in clients:
                await client.idle()
            assert [rows for _, rows in here.device.launched] == [8]

    run(test())


def test_a_program_used_many_times_in_one_frame_is_planned_once() -> None:
    async def test() -> None:
        planner = InstantPlanner(withholds=True)
        async with world(planner=planner) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10), segment(NEGATE, 101, 10))
            client.send(segment(NEGATE, 102, 10))
            await client.idle()
            assert len(planner.requests) == 1

    run(test())


# ---- plans ----


def test_a_plan_that_two_sessions_wait_for_comes_though_the_first_of_them_ends() -> None:
    async def test() -> None:
        planner = InstantPlanner(withholds=True)
        async with world(planner=planner) as here:
            one, other = here.client("a"), here.client("b")
            for client in (one, other):
                client.send(segment(NEGATE, 100, 10))
            here.engine.end(one.session)
            (request,) = planner.made
            request.answer.set_result(planned(request.raw))
            entry = other.session.programs[NEGATE]
            await until(lambda: entry.state is PlanState.LOADED)

    run(test())


def test_a_refused_plan_leaves_the_program_at_tier_0() -> None:
    async def test() -> None:
        planner = InstantPlanner(withholds=True)
        async with world(planner=planner) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10))
            planner.made[0].answer.set_exception(PlannerRefusal("too long"))
            entry = client.session.programs[NEGATE]
            await until(lambda: entry.state is PlanState.REFUSED)
            client.send(segment(NEGATE, 101, 10), Fetch(1, 101))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]

    run(test())


@pytest.mark.parametrize("fault", ["load", "arena"])
def test_a_plan_that_the_device_does_not_take_leaves_the_program_at_tier_0(fault: str) -> None:
    async def test() -> None:
        device = WatchedDevice()
        if fault == "load":
            device.load_fault = OSError("no such library")
        else:
            device.arena_limit_bytes = -1
        async with world(device, planner=InstantPlanner()) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10))
            entry = client.session.programs[NEGATE]
            await until(lambda: entry.state is PlanState.REFUSED)
            client.send(segment(NEGATE, 101, 10), Fetch(1, 101))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert not here.broken

    run(test())


# ---- faults


def test_a_report_that_cannot_be_taken_in_is_told_and_the_others_are_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            fault = RuntimeError("no such table")

            def fail(report: object) -> None:
                raise fault

            monkeypatch.setattr(here.engine._plans, "take", fail)
            pending = PendingFetch(client.session, 1, client.session.values[10])
            here.engine._reports += [
                Unloadable(client.session.programs[NEGATE], "refused"),
                Brought(pending, memoryview(DATA)),
            ]
            here.engine._finish_reports()
            assert (here.broken, here.engine.is_ready) == ([fault], False)
            assert (await client.value(1)) == [0.0, 1.0, 2.0, 3.0]
            here.broken.clear()

    run(test())


def test_a_broken_device_is_told() -> None:
    async def test() -> None:
        device = WatchedDevice()
        async with world(device, planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            device.launch_fault = RuntimeError("an illegal address")
            client.send(segment(NEGATE, 100, 10))
            await until(lambda: here.broken)
            assert here.broken == [device.launch_fault]

    run(test())


def test_a_device_that_never_finishes_its_work_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with world() as here:
            most_ns = int(here.engine.config.device.stall_s * 1e9)
            monkeypatch.setattr(here.engine._device_thread._completion, "_waiting_since_ns", 0)
            for now_ns in (0, most_ns, most_ns + 1, most_ns + 2):
                here.engine.break_if_device_stalls(now_ns)
                assert bool(here.broken) == (now_ns > most_ns)
            assert len(here.broken) == 1
            assert "device.stall_s = 120.0" in str(here.broken[0])

    run(test())


def test_a_row_that_fails_unexpectedly_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bool:
        raise ValueError("unexpected")

    async def test() -> None:
        async with world() as here:
            client = here.client()
            with monkeypatch.context() as patched:
                patched.setattr(Iteration, "go_on", fail)
                client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
                assert await client.failure(1) == "server_fault"
            client.send(segment(NEGATE, 200, 10), Fetch(2, 200))
            assert await client.value(2) == [-0.0, -1.0, -2.0, -3.0]
            assert not here.broken

    run(test())


def test_rows_that_are_ordered_before_their_input_has_failed_carry_its_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = Iteration.go_on

    def fail_the_first(iteration: Iteration, until_ns: int) -> bool:
        if iteration._row.base == 100:
            raise ValueError("unexpected")
        return go_on(iteration, until_ns)

    async def test() -> None:
        async with world() as here:
            client = here.client()
            monkeypatch.setattr(Iteration, "go_on", fail_the_first)
            client.send(segment(NEGATE, 100, 10), segment(NEGATE, 200, 100), Fetch(1, 100), Fetch(2, 200))
            failures = [(await client.fetched(fetch)).failure for fetch in (1, 2)]
            assert failures[0] == failures[1]
            assert here.engine.counters.failures == {"server_fault": 1}

    run(test())


# ---- tier 0 beside tier 1 ----


def test_a_row_at_tier_0_and_what_its_session_sends_next_hold_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, go_on = threading.Event(), Iteration.go_on

    def run_once_let_go(iteration: Iteration, until_ns: int) -> bool:
        return gate.is_set() and go_on(iteration, until_ns)

    async def test() -> None:
        planner = InstantPlanner()
        async with world(planner=planner) as here:
            slow, other = here.client("slow"), here.client("other")
            await load(here, slow)
            planner.withholds = True
            monkeypatch.setattr(Iteration, "go_on", run_once_let_go)
            unplanned = frames.encode_programs([new(4, chain(("negative", "negative")))])
            slow.send(
                segment(4, 100, 10), *(segment(NEGATE, 200 + index, 10) for index in range(5)), programs=unplanned
            )
            for fetch in range(1, 6):
                other.send(segment(NEGATE, 100 + fetch, 10), Fetch(fetch, 100 + fetch))
                assert (await other.fetched(fetch)).data is not None
            assert slow.session.completed.segments < slow.session.admitted.segments - 5
            gate.set()
            await slow.idle()

    try:
        run(test())
    finally:
        gate.set()
