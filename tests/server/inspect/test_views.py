"""What the routes tell of the snapshot of one engine or of several."""

from __future__ import annotations

from dataclasses import replace

from fusewire_server.figures import joined, read
from fusewire_server.inspect.snapshots.details import BlockView
from fusewire_server.inspect.snapshots.stats import InFlight, KernelWaits, Queue
from fusewire_server.inspect.views import PoolView, QueueView
from tests.server.inspect.examples import DETAILS, SESSION, SLOW_SEGMENT, SNAPSHOT, STATS


def test_the_memory_of_all_devices_adds_up() -> None:
    received = read(PoolView, joined([SNAPSHOT, SNAPSHOT]))
    assert received.device_memory_bytes == 2 * STATS.backend.memory_bytes
    assert received.free_bytes == received.device_memory_bytes - 2 * STATS.memory.live_bytes


def test_the_blocks_of_all_devices_are_told_by_size() -> None:
    blocks, other = DETAILS.blocks, BlockView(size_bytes=1, free=2, live=3)
    assert joined([DETAILS, replace(DETAILS, blocks=(other,))]).blocks == (other, *blocks)
    assert joined([DETAILS, DETAILS]).blocks == tuple(
        [BlockView(size_bytes=b.size_bytes, free=2 * b.free, live=2 * b.live) for b in blocks]
    )


def test_the_rows_that_wait_are_told_by_tenant_and_by_program() -> None:
    sessions = (
        replace(SESSION, queued_rows=2, next_program="aa"),
        replace(SESSION, queued_rows=3, next_program="aa"),
        replace(SESSION, tenant="other", queued_rows=1, next_program="bb"),
        SESSION,
    )
    stats = replace(STATS, queue=Queue(6, 1, 0.5), in_flight=InFlight(0, 0, 4), kernel_waits=KernelWaits(kernels=1))
    received = read(QueueView, replace(SNAPSHOT, stats=stats, sessions=sessions))
    assert (received.rows, received.held_back_rows, received.oldest_row_s, received.submissions) == (6, 1, 0.5, 4)
    assert [(each.tenant, each.rows) for each in received.tenants] == [("lab", 5), ("other", 1)]
    assert [(each.digest, each.sessions) for each in received.programs] == [("aa", 2), ("bb", 1)]
    assert received.kernel_waits.kernels == 1


def test_the_queues_of_several_engines_are_one() -> None:
    sessions = (replace(SESSION, queued_rows=2, next_program="aa"),)
    engines = [
        replace(SNAPSHOT, stats=replace(STATS, queue=Queue(rows, 0, oldest_s), is_held=is_held), sessions=sessions)
        for rows, oldest_s, is_held in ((2, 0.5, False), (3, 1.5, True))
    ]
    received = read(QueueView, joined(engines))
    assert (received.rows, received.oldest_row_s, received.is_held) == (5, 1.5, True)
    assert [(each.tenant, each.rows) for each in received.tenants] == [("lab", 4)]


def test_nobody_waits_in_an_empty_queue() -> None:
    received = read(QueueView, SNAPSHOT)
    assert (received.rows, received.tenants, received.programs) == (0, (), ())


def test_the_newest_slow_segments_of_several_engines_come_first() -> None:
    at = [replace(SLOW_SEGMENT, at=f"2030-01-01T00:00:0{second}+00:00") for second in range(4)]
    engines = [replace(DETAILS, slow_segments=each) for each in ((at[2], at[0]), (at[3], at[1]))]
    assert joined(engines).slow_segments == (at[3], at[2], at[1], at[0])
