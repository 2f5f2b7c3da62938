"""Arrays, pool, queue and slow segments, described from the engine's live tables."""

from __future__ import annotations

import asyncio
from typing import Any

from fusewire_kernels.devices.base import BlockCount
from fusewire_protos.frames import Free
from fusewire_server.engine.outcome import outcome_of
from fusewire_server.inspect import live_views
from fusewire_server.inspect.control import Control
from fusewire_server.inspect.engine_thread import EngineThread
from fusewire_server.inspect.snapshots.snapshot import shown_id
from fusewire_server.inspect.views import BlockView
from fusewire_server.programs.slow_log import MOST_KEPT, SLOW_NS, SlowSegment
from tests.segments import loop_of
from tests.server.parts import SIZE_BYTES, segment
from tests.server.world import (
    DEADLINE_S,
    NEGATE,
    Client,
    InstantPlanner,
    WatchedDevice,
    World,
    in_world,
    lack_exp,
    load,
    run,
    until,
    world,
)


class CountingDevice(WatchedDevice):
    """Tells of its blocks in use, and of three free ones."""

    def block_counts(self) -> list[BlockCount]:
        return [BlockCount(SIZE_BYTES, 3, len(self.in_use))]


def _shown(client: Client) -> str:
    return shown_id(client.session.session_id)


def slow_segment(base: int, *, total_ns: int = SLOW_NS, queue_ns: int = 0, device_ns: int = 0) -> SlowSegment:
    return SlowSegment(
        at_s=0.0,
        session_id=bytes(16),
        digest=b"\xaa",
        base=base,
        ops=1,
        iterations=1,
        tier=0,
        rows=1,
        total_ns=total_ns,
        queue_ns=queue_ns,
        device_ns=device_ns,
        planning_ns=2,
        compiling_ns=3,
    )


def control_of(here: World) -> Control:
    engine_thread = EngineThread(asyncio.get_running_loop().call_soon_threadsafe, DEADLINE_S)

    async def ask(name: str, **arguments: Any) -> list[Any]:
        return [await engine_thread.ask(lambda: live_views.ANSWERS[name](here.engine, **arguments))]

    return Control(ask, lambda: None)


@in_world()
async def test_arrays_are_told_with_their_origin(here: World) -> None:
    client = here.client()
    client.send(segment(NEGATE, 100, 10))
    await client.idle()
    told = await control_of(here).arrays(_shown(client), after=-1, limit=10)
    assert told is not None
    by_handle = {array.handle: array for array in told.arrays}
    assert by_handle.keys() == client.session.values.keys()
    computed = by_handle[max(by_handle)]
    assert computed.base == 100
    assert computed.handle == 100 + (computed.op or 0)
    assert (by_handle[10].base, by_handle[10].op) == (None, None)
    assert all(0 <= array.age_s < 10 for array in told.arrays)
    assert sum(array.bytes for array in told.arrays) == client.session.live_bytes


@in_world()
async def test_arrays_come_in_pages_although_others_go(here: World) -> None:
    client, control = here.client(), control_of(here)
    client.send(*[segment(NEGATE, base, 10) for base in (400, 100, 300, 200)])
    first = await control.arrays(_shown(client), after=-1, limit=3)
    client.send(Free((11, 100)))
    assert first is not None
    assert first.next == "100"
    second = await control.arrays(_shown(client), after=int(first.next), limit=3)
    assert second is not None
    assert [[array.handle for array in page.arrays] for page in (first, second)] == [
        [10, 11, 100],
        [200, 300, 400],
    ]
    assert second.next is None


@in_world()
async def test_an_array_that_goes_while_a_page_is_made_is_left_out(here: World) -> None:
    client = here.client()
    assert [array.handle for array in live_views.arrays_of(here.engine, _shown(client), [9, 10])] == [10]
    assert live_views.arrays_of(here.engine, "nobody", [10]) == ()


@in_world()
async def test_no_arrays_of_a_session_that_is_not_there(here: World) -> None:
    assert await control_of(here).arrays("nobody", after=-1, limit=1) is None


@in_world()
async def test_waiting_rows_are_counted_by_tenant_and_program(here: World) -> None:
    client = here.client()
    await client.idle()
    here.engine.hold()
    client.send(segment(NEGATE, 100, 10), segment(NEGATE, 200, 10))
    await outcome_of(here.engine.unapplied(client.session))
    told = live_views.queue_of(here.engine)
    assert (told.rows, told.is_held) == (2, True)
    assert [(one.tenant, one.rows) for one in told.tenants] == [("lab", 2)]
    digest = client.session.programs[NEGATE].digest.hex()
    assert [(one.digest, one.sessions) for one in told.programs] == [(digest, 1)]
    here.engine.unhold()
    await client.idle()
    assert live_views.queue_of(here.engine).rows == 0


def test_the_queue_tells_which_kernels_rows_wait_for() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner(withholds=True)) as here:
            client = here.client()
            assert live_views.queue_of(here.engine).kernel_waits.kernels == 0
            await lack_exp(here, client)
            told = live_views.queue_of(here.engine).kernel_waits
            assert [(wait.op, wait.sessions, wait.refusal) for wait in told.oldest] == [("exp", (_shown(client),), "")]

    run(test())


def test_the_pool_is_that_of_the_device() -> None:
    async def test() -> None:
        async with world(CountingDevice()) as here:
            here.client()
            await until(lambda: len(here.device.in_use) == 2)
            told = await control_of(here).pool()
            assert told.device_memory_bytes == here.engine.device.info.memory_bytes
            assert told.live_bytes == told.peak_bytes == 2 * SIZE_BYTES
            assert told.free_bytes == told.device_memory_bytes - told.live_bytes
            assert told.blocks == (BlockView(size_bytes=SIZE_BYTES, free=3, live=2),)

    run(test())


@in_world()
async def test_the_newest_slow_segments_come_first_and_are_bounded(here: World) -> None:
    log = here.engine._submissions.slow_log
    for base in range(MOST_KEPT + 5):
        log.add(slow_segment(base))
    told = live_views.slow_segments_of(here.engine, MOST_KEPT)
    assert [entry.base for entry in told] == list(range(MOST_KEPT + 4, 4, -1))
    assert told[0].total_s == SLOW_NS / 1e9


@in_world()
async def test_a_segment_that_waits_long_is_in_the_slow_log(here: World) -> None:
    client = here.client()
    await client.idle()
    here.engine.hold()
    client.send(segment(NEGATE, 100, 10))
    await outcome_of(here.engine.unapplied(client.session))
    (row,) = client.session.queue
    row.queued_at_ns -= SLOW_NS
    here.engine.unhold()
    await client.idle()
    (entry,) = live_views.slow_segments_of(here.engine, 10)
    assert (entry.base, entry.session) == (100, _shown(client))
    assert (entry.ops, entry.iterations, entry.tier, entry.rows) == (1, 1, 0, 1)
    assert entry.queue_s >= SLOW_NS / 1e9
    assert entry.total_s >= entry.queue_s
    assert (entry.planning_s, entry.compiling_s) == (0, 0)


def test_a_slow_loop_tells_the_ops_of_its_body_and_its_iterations() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            here.engine.hold()
            client.send(loop_of(segment(NEGATE, 100, 10), 5, 1, (1,)))
            await outcome_of(here.engine.unapplied(client.session))
            (row,) = client.session.queue
            row.queued_at_ns -= SLOW_NS
            here.engine.unhold()
            await client.idle()
            slow = live_views.slow_segments_of(here.engine, 10)  # on a busy machine, that of `load` may be one too
            (entry,) = [each for each in slow if each.base == 100]
            assert (entry.ops, entry.iterations, entry.tier) == (1, 5, 1)
            assert entry.planning_s == entry.compiling_s == 1e-9

    run(test())


@in_world()
async def test_ended_sessions_and_failures_are_told_the_newest_first(here: World) -> None:
    one, two = here.client("a"), here.client("b")
    one.send(segment(NEGATE, 100, 99))
    await one.idle()
    here.engine.end(one.session, "goodbye")
    here.engine.end(two.session, "slow_reader")
    control = control_of(here)
    ended = await control.ended_sessions(10)
    assert [(each.client, each.reason) for each in ended] == [("b", "slow_reader"), ("a", "goodbye")]
    (failure,) = await control.failures(10)
    assert (failure.session, failure.case) == (_shown(one), "unknown_handle")
    assert await control.ended_sessions(1) == ended[:1]


@in_world()
async def test_an_operator_s_end_is_told_with_its_reason(here: World) -> None:
    client = here.client()
    here.engine.detach(client.session, client.session.epoch)
    assert await control_of(here).end_session(_shown(client))
    (ended,) = await control_of(here).ended_sessions(10)
    assert (ended.reason, ended.text) == ("ended_by_operator", "an operator of the server ended this session")


@in_world()
async def test_the_phases_of_a_slow_segment_are_its_whole_time(here: World) -> None:
    log = here.engine._submissions.slow_log
    log.add(slow_segment(0, total_ns=20_000_000, queue_ns=12_000_000, device_ns=5_000_000))
    (entry,) = live_views.slow_segments_of(here.engine, 1)
    assert (entry.queue_s, entry.order_s, entry.device_s) == (0.012, 0.003, 0.005)
    assert (entry.planning_s, entry.compiling_s) == (2e-9, 3e-9)
