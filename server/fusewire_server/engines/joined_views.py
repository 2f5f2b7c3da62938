"""Joins what several engines answer to questions that no snapshot answers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce

from fusewire_server.engines.joined_snapshots import added
from fusewire_server.inspect.views import (
    BlockView,
    PoolView,
    QueuedProgram,
    QueuedTenant,
    QueueView,
    SlowSegmentView,
)

_MOST_LISTED = 1000


def joined_pools(pools: Sequence[PoolView]) -> PoolView:
    """Returns the memory of all devices."""
    blocks: dict[int, BlockView] = {}
    for block in (each for pool in pools for each in pool.blocks):
        before = blocks.get(block.size_bytes, BlockView(size_bytes=block.size_bytes, free=0, live=0))
        both = {"free": before.free + block.free, "live": before.live + block.live}
        blocks[block.size_bytes] = before.model_copy(update=both)
    sums = {name: sum(getattr(pool, name) for pool in pools) for name in PoolView.model_fields if name != "blocks"}
    return PoolView(**sums, blocks=tuple([blocks[size] for size in sorted(blocks)]))


def joined_queues(queues: Sequence[QueueView]) -> QueueView:
    """Returns the rows that wait for any device."""
    tenants: Counter[str] = Counter()
    programs: Counter[str] = Counter()
    for queue in queues:
        tenants.update({each.tenant: each.rows for each in queue.tenants})
        programs.update({each.digest: each.sessions for each in queue.programs})
    return QueueView(
        rows=sum(queue.rows for queue in queues),
        held_back_rows=sum(queue.held_back_rows for queue in queues),
        oldest_row_s=max(queue.oldest_row_s for queue in queues),
        submissions=sum(queue.submissions for queue in queues),
        is_held=any(queue.is_held for queue in queues),
        tenants=tuple([QueuedTenant(tenant=name, rows=rows) for name, rows in tenants.most_common(_MOST_LISTED)]),
        programs=tuple([QueuedProgram(digest=each, sessions=of) for each, of in programs.most_common(_MOST_LISTED)]),
        kernel_waits=reduce(added, [queue.kernel_waits for queue in queues]),
    )


def joined_slow_segments(lists: Sequence[Sequence[SlowSegmentView]], limit: int) -> tuple[SlowSegmentView, ...]:
    """Returns the newest slow segments of all devices."""
    segments = [each for segments in lists for each in segments]
    return tuple(sorted(segments, key=lambda each: each.at, reverse=True)[:limit])
