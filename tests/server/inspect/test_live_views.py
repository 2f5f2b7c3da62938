"""Arrays, pool, queue and slow segments, described from the engine's live tables."""

from __future__ import annotations

from fusewire_server.inspect import live_views
from fusewire_server.inspect.snapshot import shown_id
from fusewire_server.programs.slow_log import MOST_KEPT, SLOW_NS, SlowSegment
from tests.server.parts import segment
from tests.server.world import NEGATE, Client, run, world


def _shown(client: Client) -> str:
    return shown_id(client.session.session_id)


def test_arrays_are_told_with_their_origin() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10))
            await client.idle()
            told = live_views.arrays_of(here.engine, _shown(client), after=-1, limit=10)
            assert told is not None
            by_handle = {array.handle: array for array in told.arrays}
            assert by_handle.keys() == client.session.values.keys()
            computed = by_handle[max(by_handle)]
            assert computed.base == 100
            assert computed.handle == 100 + (computed.op or 0)
            assert (by_handle[10].base, by_handle[10].op) == (None, None)
            assert all(0 <= array.age_s < 10 for array in told.arrays)
            assert sum(array.bytes for array in told.arrays) == client.session.live_bytes

    run(test())


def test_arrays_come_in_pages() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10), segment(NEGATE, 200, 10))
            await client.idle()
            found, after = [], -1
            while True:
                page = live_views.arrays_of(here.engine, _shown(client), after=after, limit=1)
                assert page is not None
                found += [array.handle for array in page.arrays]
                if page.following is None:
                    break
                after = page.following
            assert found == sorted(client.session.values)

    run(test())


def test_no_arrays_of_a_session_that_is_not_there() -> None:
    async def test() -> None:
        async with world() as here:
            assert live_views.arrays_of(here.engine, "nobody", after=-1, limit=1) is None

    run(test())


def test_waiting_rows_are_counted_by_tenant_and_program() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            here.engine.hold()
            client.send(segment(NEGATE, 100, 10), segment(NEGATE, 200, 10))
            await here.engine.applied(client.session)
            told = live_views.queue_of(here.engine)
            assert (told.rows, told.is_held) == (2, True)
            assert [(one.tenant, one.rows) for one in told.tenants] == [("lab", 2)]
            digest = client.session.programs[NEGATE].digest.hex()
            assert [(one.digest, one.sessions) for one in told.programs] == [(digest, 1)]
            here.engine.unhold()
            await client.idle()
            assert live_views.queue_of(here.engine).rows == 0

    run(test())


def test_the_pool_is_that_of_the_device() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            told = live_views.pool_of(here.engine)
            assert told.device_memory_bytes == here.engine.device.info.memory_bytes
            assert 0 < told.live_bytes <= told.peak_bytes

    run(test())


def test_the_newest_slow_segments_come_first_and_are_bounded() -> None:
    async def test() -> None:
        async with world() as here:
            log = here.engine._submissions.slow_log
            for base in range(MOST_KEPT + 5):
                log.add(SlowSegment(0.0, bytes(16), b"\xaa", base, 1, 1, SLOW_NS, 0, 0))
            told = live_views.slow_segments_of(here.engine, MOST_KEPT)
            assert [entry.base for entry in told] == list(range(MOST_KEPT + 4, 4, -1))
            assert told[0].total_s == SLOW_NS / 1e9

    run(test())


def test_a_segment_that_waits_long_is_in_the_slow_log() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            here.engine.hold()
            client.send(segment(NEGATE, 100, 10))
            await here.engine.applied(client.session)
            (row,) = client.session.queue
            row.queued_at_ns -= SLOW_NS
            here.engine.unhold()
            await client.idle()
            (entry,) = live_views.slow_segments_of(here.engine, 10)
            assert (entry.base, entry.session) == (100, _shown(client))
            assert entry.queue_s >= SLOW_NS / 1e9
            assert entry.total_s >= entry.queue_s

    run(test())
