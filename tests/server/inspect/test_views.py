"""What the routes tell of the snapshot of one engine or of several."""

from __future__ import annotations

from dataclasses import replace

from fusewire_server.figures import joined, read
from fusewire_server.inspect.snapshots.snapshot import BlockView, InFlight, KernelWaits, Queue
from fusewire_server.inspect.views import PoolView, QueueView
from tests.server.inspect.examples import SESSION, SLOW_SEGMENT, SNAPSHOT, STATS


def test_the_memory_of_all_devices_adds_up() -> None:
    blocks = SNAPSHOT.blocks
    other = replace(SNAPSHOT, blocks=(BlockView(size_bytes=1, free=2, live=3),))
    told = read(PoolView, joined([SNAPSHOT, other]))
    assert told.device_memory_bytes == 2 * STATS.backend.memory_bytes
    assert told.free_bytes == told.device_memory_bytes - 2 * STATS.memory.live_bytes
    assert told.blocks == (BlockView(size_bytes=1, free=2, live=3), *blocks)
    twice = read(PoolView, joined([SNAPSHOT, SNAPSHOT])).blocks
    assert twice == tuple([BlockView(size_bytes=b.size_bytes, free=2 * b.free, live=2 * b.live) for b in blocks])


def test_the_rows_that_wait_are_told_by_tenant_and_by_program() -> None:
    sessions = (
        replace(SESSION, queued_rows=2, next_program="aa"),
        replace(SESSION, queued_rows=3, next_program="aa"),
        replace(SESSION, tenant="other", queued_rows=1, next_program="bb"),
        SESSION,
    )
    stats = replace(STATS, queue=Queue(6, 1, 0.5), in_flight=InFlight(0, 0, 4), kernel_waits=KernelWaits(kernels=1))
    told = read(QueueView, replace(SNAPSHOT, stats=stats, sessions=sessions))
    assert (told.rows, told.held_back_rows, told.oldest_row_s, told.submissions) == (6, 1, 0.5, 4)
    assert [(each.tenant, each.rows) for each in told.tenants] == [("lab", 5), ("other", 1)]
    assert [(each.digest, each.sessions) for each in told.programs] == [("aa", 2), ("bb", 1)]
    assert told.kernel_waits.kernels == 1


def test_nobody_waits_in_an_empty_queue() -> None:
    told = read(QueueView, SNAPSHOT)
    assert (told.rows, told.tenants, told.programs) == (0, (), ())


def test_the_newest_slow_segments_of_several_engines_come_first() -> None:
    at = [replace(SLOW_SEGMENT, at=f"2030-01-01T00:00:0{second}+00:00") for second in range(4)]
    engines = [replace(SNAPSHOT, slow_segments=each) for each in ((at[2], at[0]), (at[3], at[1]))]
    assert joined(engines).slow_segments == (at[3], at[2], at[1], at[0])
