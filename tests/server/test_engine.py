"""The engine on a real loop and real threads, with a device that computes at tier 0 and only looks on at tier 1."""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.plan import InputColumn, OutputColumn, Plan
from fusewire_protos import dtypes, frames
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES, Abandon, Cancel, Entry, Fetch, Free, Upload
from fusewire_protos.program import build
from fusewire_protos.shapes import Spec
from fusewire_server import config
from fusewire_server.device_thread import Brought, Unloadable
from fusewire_server.planner import PlannerRefusal
from fusewire_server.programs import PlanState
from fusewire_server.session import Session, SessionState
from fusewire_server.work import Fetching
from tests.server.parts import SIZE_BYTES, VECTOR, chain, new, op, segment, upload, upload_beside
from tests.server.world import (
    ADD,
    DATA,
    NEGATE,
    PAIR,
    InstantPlanner,
    WatchedDevice,
    World,
    columns,
    load,
    run,
    staged,
    until,
    world,
)

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
        planner = InstantPlanner()
        planner.withheld = []
        async with world(planner=planner) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10), segment(NEGATE, 101, 10))
            client.send(segment(NEGATE, 102, 10))
            await client.idle()
            assert len(planner.requests) == 1

    run(test())


# ---- plans ----


def test_a_refused_plan_leaves_the_program_at_tier_0() -> None:
    async def test() -> None:
        planner = InstantPlanner()
        planner.withheld = []
        async with world(planner=planner) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10))
            planner.withheld[0].set_exception(PlannerRefusal("too long"))
            entry = client.session.programs[NEGATE]
            await until(lambda: entry.state is PlanState.REFUSED)
            client.send(segment(NEGATE, 101, 10), Fetch(1, 101))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]

    run(test())


def test_rows_whose_kernel_is_refused_fail_at_once_and_others_go_on() -> None:
    async def test() -> None:
        planner = InstantPlanner()
        planner.withheld = []
        async with world(planner=planner) as here:
            client = here.client()
            exponential = frames.encode_programs([new(4, chain(("exp",)), is_fragment=True)])
            client.send(segment(4, 100, 10), segment(NEGATE, 200, 10), Fetch(1, 100), programs=exponential)
            planner.withheld[0].set_exception(PlannerRefusal("the worker died"))
            assert await client.failure(1) == "server_fault"
            client.send(Fetch(2, 200))
            assert await client.value(2) == [-0.0, -1.0, -2.0, -3.0]
            client.send(segment(4, 300, 10))
            assert len([raw for raw, is_urgent in planner.requests if is_urgent]) == 2

    run(test())


def test_a_session_that_ends_waits_for_no_plan() -> None:
    async def test() -> None:
        planner = InstantPlanner()
        planner.withheld = []
        async with world(planner=planner) as here:
            client = here.client()
            exponential = frames.encode_programs([new(4, chain(("exp",)))])
            client.send(segment(4, 100, 10), programs=exponential)
            here.engine.end(client.session)
            assert len(planner.withheld) == 2
            assert all(answer.cancelled() for answer in planner.withheld)

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


# ---- donation ----


@pytest.mark.parametrize(
    ("entries", "is_donated"),
    [
        ([segment(NEGATE, 100, 10, dying=(0,))], True),
        ([segment(NEGATE, 100, 10), Free((10,))], True),
        ([segment(NEGATE, 100, 10)], False),
        ([segment(NEGATE, 100, 10), segment(NEGATE, 101, 10, dying=(0,))], False),
    ],
)
def test_an_input_is_overwritten_only_if_nobody_can_read_it_again(entries: list[Entry], is_donated: bool) -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            here.engine.hold()
            client.send(*entries)
            here.engine.unhold()
            await client.idle()
            assert donates(here.device.tables[0], here.device.launched[0][0]) == is_donated

    run(test())


def donates(table: npt.NDArray[np.int64], plan: Plan) -> bool:
    (row,) = table
    return not set(row[columns(plan, InputColumn)]).isdisjoint(row[columns(plan, OutputColumn)])


def test_a_dying_input_that_is_used_twice_is_not_overwritten() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            client.send(segment(ADD, 100, 10, 10, dying=(0, 1)))
            await client.idle()
            assert not donates(here.device.tables[0], here.device.launched[0][0])

    run(test())


def test_donation_can_be_switched_off() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            here.engine.config = replace(here.engine.config, device=config.Device(donation=False))
            client = here.client()
            await load(here, client)
            client.send(segment(NEGATE, 100, 10, dying=(0,)))
            await client.idle()
            assert here.engine.memory.donations == 0

    run(test())


@pytest.mark.parametrize(("dying", "donations"), [((0,), 1), ((), 0)])
def test_op_by_op_a_dying_input_is_overwritten_too(dying: tuple[int, ...], donations: int) -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10, dying=dying), Fetch(1, 100))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert here.engine.memory.donations == donations

    run(test())


def test_op_by_op_every_input_is_read_before_any_is_overwritten() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(PAIR, 100, 10, 11, dying=(0, 1)), Fetch(1, 100), Fetch(2, 101), Fetch(3, 102))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert await client.value(2) == [-0.0, -1.0, -2.0, -3.0]
            assert await client.value(3) == [0.0, 2.0, 4.0, 6.0]
            assert here.engine.memory.donations == 2

    run(test())


def test_a_donor_is_given_back_when_its_row_finds_no_room() -> None:
    async def test() -> None:
        device = WatchedDevice()
        async with world(device, planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            device._memory_bytes = device.live_bytes
            client.send(segment(PAIR, 100, 10, 11, dying=(0, 1)), Fetch(1, 100))
            assert await client.failure(1) == "out_of_memory"

    run(test())


# ---- memory ----


def test_out_of_memory_fails_the_one_row_and_what_depends_on_it() -> None:
    async def test() -> None:
        device = WatchedDevice(memory_bytes=6 * SIZE_BYTES)
        async with world(device) as here:
            here.engine.hold()
            one, other = here.client("a"), here.client("b")
            one.send(segment(PAIR, 100, 10, 11), segment(NEGATE, 200, 100), Fetch(1, 100), Fetch(2, 200), Fetch(3, 10))
            other.send(
                segment(PAIR, 100, 10, 11), segment(NEGATE, 200, 100), Fetch(1, 100), Fetch(2, 200), Fetch(3, 10)
            )
            here.engine.unhold()
            await one.idle()
            await other.idle()
            for client in (one, other):
                assert await client.failure(1) == "out_of_memory"
                assert await client.failure(2) == "out_of_memory"
                assert await client.value(3) == [0.0, 1.0, 2.0, 3.0]

    run(test())


def test_a_row_that_fits_goes_on_beside_one_that_does_not() -> None:
    async def test() -> None:
        device = WatchedDevice(memory_bytes=10 * SIZE_BYTES)  # one row's results, and as much while it runs op by op
        async with world(device) as here:
            here.engine.hold()
            clients = [here.client("a"), here.client("b")]
            for client in clients:
                client.send(segment(PAIR, 100, 10, 11), Fetch(1, 100))
            here.engine.unhold()
            outcomes = [(await client.fetched(1)).failure for client in clients]
            assert [failure is None for failure in outcomes].count(True) == 1

    run(test())


def test_intermediate_values_of_a_run_op_by_op_count_too_and_what_does_not_fit_names_the_setting() -> None:
    async def test() -> None:
        async with world(WatchedDevice(memory_bytes=4 * SIZE_BYTES)) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            client.send(Free((100,)))
            longer = frames.encode_programs([new(4, chain(("negative", "negative")))])
            client.send(segment(4, 200, 10), Fetch(2, 201), programs=longer)
            failure = (await client.fetched(2)).failure
            assert failure is not None
            assert (failure.case.name, "device.memory_bytes" in failure.text) == ("out_of_memory", True)

    run(test())


def test_an_upload_without_room_fails_and_gives_its_credit_back() -> None:
    async def test() -> None:
        async with world(WatchedDevice(memory_bytes=2 * SIZE_BYTES)) as here:
            client = here.client()
            client.send(upload(20), segment(NEGATE, 100, 20), Fetch(1, 20), Fetch(2, 100))
            assert await client.failure(1) == "out_of_memory"
            assert await client.failure(2) == "out_of_memory"
            await client.idle()

    run(test())


def test_a_failed_value_of_another_spec_may_be_an_input() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(Upload(20, Spec(dtypes.uint8, (3,)), 0))
            client.send(segment(PAIR, 100, 10, 20), segment(PAIR, 200, 10, 101), Fetch(1, 100), Fetch(2, 200))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert await client.value(2) == [-0.0, -1.0, -2.0, -3.0]

    run(test())


def test_what_a_protocol_failure_cuts_short_is_given_back_too() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            with pytest.raises(CaseError, match="unknown_program"):
                client.send(Free((10,)), segment(99, 100, 11))
            here.engine.end(client.session)
            await until(lambda: here.device.live_bytes == 0)

    run(test())


# ---- uploads beside the stream ----


def test_an_upload_may_come_before_its_declaration() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            claim = here.engine.uploads.claim(client.session, 20)
            client.send(upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 100))
            value = await claim
            assert value is not None
            here.engine.uploaded(client.session, value, staged(here.engine.device))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]

    run(test())


def test_a_second_call_for_an_upload_is_refused() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            first, second = (here.engine.uploads.claim(client.session, 20) for _ in range(2))
            client.send(upload_beside(20))
            assert await first is not None
            assert await second is None
            assert await here.engine.uploads.claim(client.session, 20) is None

    run(test())


def test_an_upload_that_nobody_brings_fails_in_time() -> None:
    async def test() -> None:
        async with world(upload_stall_s=0.01) as here:
            client = here.client()
            client.send(upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 100))
            assert await client.failure(1) == "upload_failed"
            await client.idle()

    run(test())


def test_a_call_that_waits_for_a_declaration_is_let_go_when_the_session_ends() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            claim = here.engine.uploads.claim(client.session, 20)
            here.engine.end(client.session)
            assert await claim is None

    run(test())


# ---- fetches ----


def test_large_answers_stay_on_the_device_until_the_client_has_taken_others() -> None:
    async def test() -> None:
        large = Spec(dtypes.uint8, (2 * INLINE_BYTES,))
        async with world(unread_bytes=large.size_bytes * 3 // 2) as here:
            client = here.client()
            client.send(
                Upload(20, large, 0), Fetch(1, 20), Fetch(2, 20), Free((20,)), tensors=[bytes(large.size_bytes)]
            )
            assert (await client.fetched(1)).beside_bytes == large.size_bytes
            assert 2 in client.session.fetches
            assert client.session.unread_bytes == large.size_bytes
            beside = client.session.begin_download(1)
            assert beside is not None
            here.engine.downloaded(client.session, 1, beside, is_complete=True)
            assert (await client.fetched(2)).beside_bytes == large.size_bytes

    run(test())


def test_a_large_answer_that_is_abandoned_makes_room() -> None:
    async def test() -> None:
        large = Spec(dtypes.uint8, (2 * INLINE_BYTES,))
        async with world(unread_bytes=large.size_bytes) as here:
            client = here.client()
            client.send(
                Upload(20, large, 0), Fetch(1, 20), Fetch(2, 20), Fetch(3, 20), tensors=[bytes(large.size_bytes)]
            )
            await client.fetched(1)
            client.send(Abandon(1), Abandon(2))
            await client.fetched(3)
            assert list(client.session.beside) == [3]

    run(test())


# ---- the lives of sessions ----


def test_cancel_lets_others_go_on() -> None:
    async def test() -> None:
        async with world() as here:
            here.engine.hold()
            one, other = here.client("a"), here.client("b")
            one.send(segment(NEGATE, 100, 10), Cancel(), Fetch(1, 100))
            other.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            here.engine.unhold()
            assert await one.failure(1) == "cancelled"
            assert await other.value(1) == [-0.0, -1.0, -2.0, -3.0]
            await one.idle()

    run(test())


def test_a_detached_session_ends_when_its_grace_has_passed() -> None:
    async def test() -> None:
        async with world(resume_grace_s=0.01) as here:
            client = here.client()
            here.engine.detach(client.session, client.session.epoch)
            assert client.session.state is SessionState.DETACHED
            await until(lambda: client.session.state is SessionState.CLOSED)
            await until(lambda: here.device.live_bytes == 0)
            with pytest.raises(CaseError, match="session_lost"):
                resume(here, client.session)

    run(test())


def test_a_resumed_session_lives_on_and_hears_what_it_missed() -> None:
    async def test() -> None:
        async with world(resume_grace_s=0.01) as here:
            client = here.client()
            here.engine.detach(client.session, client.session.epoch)
            client_fetch = Fetch(1, 10)
            assert resume(here, client.session) is client.session
            client.send(client_fetch)
            await until(lambda: client.session.answers)
            client.session.take_answers(1 << 20)
            here.engine.detach(client.session, client.session.epoch)
            resume(here, client.session)
            assert await client.value(1) == [0.0, 1.0, 2.0, 3.0]
            here.engine.detach(client.session, 1)
            assert client.session.state is SessionState.OPEN

    run(test())


def resume(here: World, session: Session, *, instance: bytes | None = None, tenant: str = "lab") -> Session:
    return here.engine.resume(session.session_id, instance or here.engine.instance, tenant, 0)


def test_a_session_is_resumed_by_its_own_tenant_at_its_own_server_only() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            here.engine.detach(client.session, client.session.epoch)
            for instance, tenant in ((b"another", "lab"), (None, "others")):
                with pytest.raises(CaseError, match="session_lost"):
                    resume(here, client.session, instance=instance, tenant=tenant)

    run(test())


def test_sessions_beyond_the_limit_and_while_draining_are_refused() -> None:
    async def test() -> None:
        async with world(sessions=1) as here:
            here.client()
            with pytest.raises(CaseError, match="too_many_sessions"):
                here.client()
            here.engine.is_draining = True
            with pytest.raises(CaseError, match="draining"):
                here.client()

    run(test())


def test_a_tenant_that_takes_too_many_sessions_is_refused_and_others_are_not() -> None:
    async def test() -> None:
        async with world(sessions=8, tenant_sessions=2) as here:
            one, _, _ = here.client("a"), here.client("b"), here.client("c", "others")
            with pytest.raises(CaseError, match=r"too_many_sessions.*limits\.tenant_sessions = 2"):
                here.client("d")
            here.engine.end(one.session)
            here.client("d")

    run(test())


@pytest.mark.parametrize("limits", [{"tenant_sessions": 2}, {"sessions": 3}])
def test_a_tenant_at_a_limit_loses_its_own_session_that_was_detached_first(limits: dict[str, Any]) -> None:
    async def test() -> None:
        async with world(**limits) as here:
            foreign, first, second = here.client("x", "others"), here.client("a"), here.client("b")
            for client in (foreign, second, first):
                here.engine.detach(client.session, 1)
            here.client("c")
            states = [client.session.state for client in (foreign, first, second)]
            assert states == [SessionState.DETACHED, SessionState.DETACHED, SessionState.CLOSED]

    run(test())


def test_a_freed_upload_counts_as_its_sessions_until_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            before_bytes = client.session.live_bytes
            told: list[object] = []
            order = here.engine._device_thread.order
            monkeypatch.setattr(here.engine._device_thread, "order", told.append)
            client.send(upload_beside(20), Free((20,)))
            value = client.session.values[20]
            here.engine.uploaded(client.session, value, staged(here.device))
            assert client.session.live_bytes == before_bytes + len(DATA)
            monkeypatch.undo()
            for each in told:
                order(each)  # type: ignore[arg-type]  # they are what was ordered
            await until(lambda: client.session.live_bytes == before_bytes)
            assert 20 not in client.session.values

    run(test())


def test_a_report_that_cannot_be_taken_in_is_told_and_the_others_are_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            fault = RuntimeError("no such table")
            finish = here.engine._finish

            def fail_once(report: object) -> None:
                monkeypatch.setattr(here.engine, "_finish", finish)
                raise fault

            monkeypatch.setattr(here.engine, "_finish", fail_once)
            fetching = Fetching(client.session, 1, client.session.values[10])
            here.engine._reports += [Unloadable(None, "refused"), Brought(fetching, memoryview(DATA))]
            here.engine._finish_reports()
            assert (here.broken, here.engine.is_ready) == ([fault], False)
            assert (await client.value(1)) == [0.0, 1.0, 2.0, 3.0]
            here.broken.clear()

    run(test())


def test_out_of_memory_names_the_setting_and_the_op() -> None:
    async def test() -> None:
        async with world(WatchedDevice(memory_bytes=2 * len(DATA))) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            failure = (await client.fetched(1)).failure
            assert failure is not None
            assert failure.text.startswith("op 0 negative: ")
            assert failure.text.endswith(f"; device.memory_bytes = {2 * len(DATA)}")

    run(test())


def test_all_that_stand_in_for_failed_inputs_share_one_block() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            large = Spec(dtypes.float32, (1000,))
            wide = build([VECTOR, large, large, large], [], [op("negative", number) for number in range(4)], range(4))
            numbered = frames.encode_programs([new(9, wide)])
            await client.idle()
            before_bytes = here.engine.memory.peak_bytes
            client.send(segment(9, 100, 10, 997, 998, 999), Fetch(1, 100), Fetch(2, 101), programs=numbered)
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert await client.failure(2) == "unknown_handle"
            results_bytes = len(DATA) + 3 * large.size_bytes
            assert here.engine.memory.peak_bytes == before_bytes + results_bytes + large.size_bytes

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


def test_a_row_that_the_array_library_cannot_run_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("unexpected")

    async def test() -> None:
        async with world() as here:
            client = here.client()
            with monkeypatch.context() as patched:
                patched.setattr("fusewire_server.device_thread.run_op_by_op", fail)
                client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
                assert await client.failure(1) == "server_fault"
            client.send(segment(NEGATE, 200, 10), Fetch(2, 200))
            assert await client.value(2) == [-0.0, -1.0, -2.0, -3.0]
            assert not here.broken

    run(test())


# ---- tier 0 beside tier 1 ----


def test_a_row_at_tier_0_and_what_its_session_sends_next_hold_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def run_until_let_go(*_: object) -> Generator[None, None, None]:
        while not gate.is_set():
            yield

    async def test() -> None:
        planner = InstantPlanner()
        async with world(planner=planner) as here:
            slow, other = here.client("slow"), here.client("other")
            await load(here, slow)
            planner.withheld = []
            monkeypatch.setattr("fusewire_server.device_thread.run_op_by_op", run_until_let_go)
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
