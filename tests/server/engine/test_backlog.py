"""Frames of many entries: others have turns while they are applied, and nothing of them is lost or disordered."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import msgpack
import pytest

from fusewire_kernels.devices.base import Block
from fusewire_protos import frames
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Entry, Fetch, Forget, Free, Segment, Upload
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import build
from fusewire_server.engine.outcome import outcome_of
from fusewire_server.sessions import intake, session
from fusewire_server.sessions.entries import failed_results
from fusewire_server.sessions.session import SessionState
from tests.server.parts import VECTOR, new, op, segment, upload
from tests.server.world import DATA, DEADLINE_S, NEGATE, Client, WatchedDevice, World, run, until, world


def begin(client: Client, *entries: Entry) -> bool:
    """Sends a frame without waiting for the end of it. Whether all was applied."""
    client.frame += 1
    return client.engine.receive(
        client.session, client.frame, b"", frames.encode_entries(entries), (DATA, b""), time.monotonic_ns()
    )


def hurry(here: World) -> None:
    """Every entry of a frame of many takes a turn of the loop. The first one is applied as it comes."""
    here.engine._backlog.end_turn()
    here.engine._backlog.slice_ns, here.engine._backlog.turn_ns = 0, 1


def failing(count: int) -> list[Segment]:
    """Segments that lack their input: they fail at once and give their credit back at once."""
    return [segment(NEGATE, 1000 + index) for index in range(count)]


async def turns_until_applied(here: World, client: Client) -> int:
    """How many turns of the loop another task has while the frame is applied."""
    applied, turns = asyncio.create_task(outcome_of(here.engine.unapplied(client.session))), 0
    while not applied.done():
        await asyncio.sleep(0)
        turns += 1
    await applied
    return turns


def test_a_session_is_heard_as_long_as_its_frame_is_applied() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            hurry(here)
            assert not begin(client, *failing(1000))
            heard_at_ns = client.session.heard_at_ns
            await turns_until_applied(here, client)
            assert client.session.heard_at_ns > heard_at_ns

    run(test())


def test_others_have_turns_while_a_frame_of_many_failing_segments_is_applied() -> None:
    async def test() -> None:
        async with world() as here:
            one, other = here.client("a"), here.client("b")
            hurry(here)
            assert not begin(one, *failing(1000))
            other.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            assert not one.session.knows(1999)
            assert await turns_until_applied(here, one) >= 900
            assert one.session.knows(1999)
            assert await other.value(1) == [-0.0, -1.0, -2.0, -3.0]

    run(test())


def test_who_has_used_the_least_time_goes_first_whatever_waits_before() -> None:
    """Each turn applies one entry. Four sessions of another tenant wait, and one of them has used much."""

    async def test() -> None:
        async with world() as here:
            busy = [here.client(name, tenant="busy") for name in "abcd"]
            quiet = here.client("quiet", tenant="quiet")
            hurry(here)
            for client in busy:
                begin(client, *failing(50))
            here.engine._backlog.charge(busy[0].session, 10**13)
            assert not begin(quiet, segment(NEGATE, 100, 10), Fetch(1, 100))
            applied = sum([client.session.failed.count for client in busy])
            await outcome_of(here.engine.unapplied(quiet.session))
            turns_until_this_task_goes_on = 2
            assert sum([client.session.failed.count for client in busy]) - applied <= turns_until_this_task_goes_on

    run(test())


def test_who_has_used_time_while_nobody_waited_does_not_wait_for_it_later() -> None:
    async def test() -> None:
        async with world() as here:
            former, newcomer = here.client("a", tenant="former"), here.client("b", tenant="newcomer")
            for used_ns in (10**12, 1):
                here.engine._backlog.charge(former.session, used_ns)
            hurry(here)
            for client in (newcomer, former):
                begin(client, *failing(200))
            await outcome_of(here.engine.unapplied(newcomer.session))
            assert former.session.knows(1000)

    run(test())


def test_a_turn_that_has_taken_long_enough_leaves_frames_to_the_next_one() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            here.engine._backlog.end_turn()
            assert begin(client, *failing(2))
            here.engine._backlog.charge(client.session, here.engine._backlog.turn_ns + here.engine._backlog.slice_ns)
            assert not begin(client, segment(NEGATE, 100, 10))
            assert 100 not in client.session.values
            await outcome_of(here.engine.unapplied(client.session))
            assert 100 in client.session.values

    run(test())


def test_a_session_is_charged_for_the_time_of_its_frames() -> None:
    async def test() -> None:
        async with world() as here:
            one, other = here.client("a"), here.client("b")
            before_ns = other.session.loop_ns
            begin(one, *failing(500))
            assert one.session.loop_ns > 0
            assert other.session.loop_ns == before_ns

    run(test())


def test_others_have_turns_while_entries_that_list_many_handles_are_read() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            hurry(here)
            count, entries = 8 * intake.MOST_FREED_AT_ONCE, 3
            assert not begin(client, *[Free(tuple(range(1000, 1000 + count)))] * entries, Free((10,)))
            assert await turns_until_applied(here, client) >= 8 * entries
            assert [*client.session.values] == [11]

    run(test())


def test_an_entry_of_many_deaths_is_applied_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "MOST_FREED_AT_ONCE", 2)

    async def test() -> None:
        async with world() as here:
            client = here.client()
            hurry(here)
            assert not begin(client, Free((999, 10, 998, 997, 11)), Fetch(1, 11))
            assert [*client.session.values] == [11]
            await outcome_of(here.engine.unapplied(client.session))
            assert not client.session.values
            assert await client.failure(1) == "unknown_handle"

    run(test())


WIDE = 9
OF_TWO = build([VECTOR] * 2, [], [*[op("negative", 0)] * 4, op("negative", 1)], range(5))


def test_results_that_fail_for_several_reasons_fail_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_results, "MOST_FAILED", 2)

    async def test() -> None:
        async with world() as here:
            client = here.client()
            hurry(here)
            client.send(programs=frames.encode_programs([new(WIDE, OF_TWO)]))
            assert not begin(client, segment(WIDE, 100, 998, 999), Fetch(1, 104))
            assert await turns_until_applied(here, client) >= 2
            assert {*range(100, 105)} <= {*client.session.values}
            assert await client.failure(1) == "unknown_handle"
            await client.idle()

    run(test())


def test_results_that_are_still_to_fail_hold_no_session_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_results, "MOST_FAILED", 2)

    async def test() -> None:
        async with world() as here:
            client = here.client()
            hurry(here)
            client.send(programs=frames.encode_programs([new(WIDE, OF_TWO)]))
            assert not begin(client, segment(WIDE, 100, 998, 999))
            here.engine.end(client.session)
            await outcome_of(here.engine.unapplied(client.session))
            assert not client.session.values

    run(test())


@pytest.mark.parametrize(
    ("bad", "case"),
    [([3, None, 1], "undecodable_frame"), ([2, [1] * (frames.MAX_FREED + 1)], "oversized_frame")],
)
def test_what_is_malformed_behind_many_good_entries_ends_the_session_when_it_is_reached(bad: Any, case: str) -> None:
    async def test() -> None:
        async with world() as here:
            client, other = here.client("a"), here.client("b")
            raw = msgpack.packb([[2, [10]], [2, [frames.MAX_HANDLE] * frames.MAX_FREED], bad, [2, [11]]])
            hurry(here)
            assert not here.engine.receive(client.session, 2, b"", raw, (), time.monotonic_ns())
            assert [*client.session.values] == [11]
            with pytest.raises(CaseError, match=case):
                await outcome_of(here.engine.unapplied(client.session))
            assert client.session.state is SessionState.CLOSED
            other.send(Fetch(1, 10))
            assert await other.value(1) == [0.0, 1.0, 2.0, 3.0]

    run(test())


def test_a_frame_of_few_entries_is_applied_at_once() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            hurry(here)
            assert begin(client, upload(20), segment(NEGATE, 100, 20), Fetch(1, 100), Free((20, 100)))
            assert client.session.admitted.segments == 1

    run(test())


def test_what_is_left_is_applied_in_its_order() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            hurry(here)
            bases = range(100, 108)
            chained = [segment(NEGATE, base, base - 1, dying=(0,)) for base in bases[1:]]
            assert not begin(client, segment(NEGATE, 100, 10), *chained, Fetch(1, bases[-1]), Free((bases[-1],)))
            await outcome_of(here.engine.unapplied(client.session))
            assert await client.value(1) == [0.0, 1.0, 2.0, 3.0]
            assert set(client.session.values) == {10, 11}

    run(test())


def test_a_frame_is_applied_to_its_end_though_its_stream_breaks() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            hurry(here)
            assert not begin(client, *failing(9))
            here.engine._registry.detach(client.session, client.session.epoch)
            await outcome_of(here.engine.unapplied(client.session))
            assert client.session.knows(1008)
            assert client.session.state is SessionState.DETACHED

    run(test())


def test_nothing_more_is_applied_once_the_session_has_ended() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            hurry(here)
            assert not begin(client, *failing(9))
            here.engine.end(client.session)
            await outcome_of(here.engine.unapplied(client.session))
            assert not client.session.values

    run(test())


def test_a_protocol_case_in_what_is_left_ends_the_session_whoever_waits() -> None:
    async def test() -> None:
        async with world() as here:
            beside, alone = here.client("a"), here.client("b")
            hurry(here)
            for client in (beside, alone):
                assert not begin(client, *failing(9), Forget(99))
            here.engine._registry.detach(alone.session, alone.session.epoch)
            with pytest.raises(CaseError, match="unknown_program"):
                await outcome_of(here.engine.unapplied(beside.session))
            await until(lambda: alone.session.state is SessionState.CLOSED)
            assert beside.session.state is SessionState.CLOSED

    run(test())


# ---- uploads that the device has still to write ----


class Stalled(WatchedDevice):
    """Writes nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()

    def write(self, block: Block, data: memoryview) -> None:
        assert self.may_write.wait(DEADLINE_S)
        super().write(block, data)


def nothing(count: int) -> list[Upload]:
    """Uploads of no bytes."""
    return [Upload(1000 + index, Spec(dtypes.float32, (0,)), 1) for index in range(count)]


@pytest.fixture(autouse=True)
def few_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MOST_WRITES", 8)


async def some_turns() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


def test_uploads_of_no_bytes_wait_while_the_device_has_many_to_write() -> None:
    async def test() -> None:
        device = Stalled()
        async with world(device) as here:
            client = here.client()
            hurry(here)
            assert not begin(client, *nothing(20))
            await some_turns()
            assert client.session.writes == 8
            device.may_write.set()
            await outcome_of(here.engine.unapplied(client.session))
            assert 1019 in client.session.values
            await until(lambda: client.session.writes == 0)

    run(test())


def test_so_do_those_of_frames_of_few_entries() -> None:
    async def test() -> None:
        device = Stalled()
        async with world(device) as here:
            client = here.client()
            uploads = nothing(9)
            assert all(begin(client, one, Free((one.handle,))) for one in uploads[:6])
            assert not begin(client, uploads[6])
            await some_turns()
            assert 1006 not in client.session.values
            device.may_write.set()
            await outcome_of(here.engine.unapplied(client.session))
            assert 1006 in client.session.values

    run(test())


def test_a_session_that_ends_waits_for_no_upload() -> None:
    async def test() -> None:
        device = Stalled()
        async with world(device) as here:
            client = here.client()
            assert begin(client, *nothing(8))
            assert not begin(client, Fetch(1, 10))
            await some_turns()
            here.engine.end(client.session)
            await asyncio.wait_for(outcome_of(here.engine.unapplied(client.session)), DEADLINE_S)
            device.may_write.set()

    run(test())
