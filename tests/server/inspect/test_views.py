"""What several engines answer to a question is one answer."""

from __future__ import annotations

from dataclasses import replace

from fusewire_server.inspect.figures import joined
from fusewire_server.inspect.views import BlockView, newest
from tests.server.inspect.examples import POOL, QUEUE, SLOW_SEGMENT


def test_the_memory_of_all_devices_adds_up() -> None:
    other = replace(POOL, blocks=(BlockView(size_bytes=1, free=2, live=3),), live_bytes=1)
    told = joined([POOL, other])
    assert told.device_memory_bytes == 2 * POOL.device_memory_bytes
    assert told.live_bytes == POOL.live_bytes + 1
    assert told.blocks == (BlockView(size_bytes=1, free=2, live=3), *POOL.blocks)
    twice = joined([POOL, POOL]).blocks
    assert twice == tuple([BlockView(size_bytes=b.size_bytes, free=2 * b.free, live=2 * b.live) for b in POOL.blocks])


def test_the_rows_that_wait_for_any_device_add_up() -> None:
    told = joined([QUEUE, replace(QUEUE, is_held=True, oldest_row_s=99.0)])
    assert told.rows == 2 * QUEUE.rows
    assert (told.oldest_row_s, told.is_held) == (99.0, True)
    assert [(each.tenant, each.rows) for each in told.tenants] == [(t.tenant, 2 * t.rows) for t in QUEUE.tenants]
    assert [(each.digest, each.sessions) for each in told.programs] == [
        (p.digest, 2 * p.sessions) for p in QUEUE.programs
    ]
    assert told.kernel_waits.kernels == 2 * QUEUE.kernel_waits.kernels


def test_the_newest_slow_segments_come_first() -> None:
    at = [replace(SLOW_SEGMENT, at=f"2030-01-01T00:00:0{second}+00:00") for second in range(4)]
    assert newest([(at[2], at[0]), (at[3], at[1])]) == (at[3], at[2], at[1], at[0])
