"""Answers questions about the engine's tables that no snapshot holds. The work on the loop thread is bounded.

The loop thread only copies what an answer needs; the inspection thread sorts and describes it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from heapq import nsmallest

from fusewire_server.engine.engine import Engine
from fusewire_server.inspect.live_views import (
    ArrayPage,
    ArrayView,
    BlockView,
    PoolView,
    QueuedProgram,
    QueuedTenant,
    QueueView,
    SlowEntry,
    SlowLog,
    SlowPhases,
)
from fusewire_server.inspect.loop_calls import LoopCalls
from fusewire_server.inspect.snapshot import shown_id
from fusewire_server.programs.slow_log import SLOW_NS, SlowSubmission
from fusewire_server.sessions.session import Session, Value

_MOST_LISTED = 1000  # tenants and programs of the queue


class Questions:
    """Asks the loop thread of one engine. Every method but `pool` raises LoopBusy if the answer takes too long."""

    def __init__(self, engine: Engine, calls: LoopCalls) -> None:
        self._engine = engine
        self._calls = calls

    async def arrays(self, session: str, after: int, limit: int) -> ArrayPage | None:
        """Returns the arrays with the next handles above `after`, or None if there is no such session."""
        handles = await self._calls.ask(partial(_handles, self._engine, session))
        if handles is None:
            return None
        wanted = nsmallest(limit + 1, (handle for handle in handles if handle > after))
        page = wanted[:limit]
        views = await self._calls.ask(partial(_array_views, self._engine, session, page))
        return ArrayPage(views, page[-1] if len(wanted) > limit else None)

    def pool(self) -> PoolView:
        """Returns the sums and blocks of the device's memory, which any thread may read."""
        memory, device = self._engine.memory, self._engine.device
        return PoolView(
            live_bytes=memory.live_bytes,
            peak_bytes=memory.peak_bytes,
            pool_bytes=memory.pool_bytes,
            free_bytes=max(device.info.memory_bytes - memory.live_bytes, 0),
            blocks=tuple(BlockView(*count) for count in device.block_counts()),
        )

    async def queue(self) -> QueueView:
        return await self._calls.ask(partial(_queue_view, self._engine))

    async def slow_log(self, limit: int) -> SlowLog:
        """Returns the newest entries."""
        entries = await self._calls.ask(lambda: tuple(self._engine.submissions.slow_log))
        newest = entries[: -limit - 1 : -1]
        return SlowLog(SLOW_NS / 1e9, tuple(_slow_entry(entry) for entry in newest))


def sessions_shown_as(engine: Engine, session: str) -> list[Session]:
    """Returns the sessions whose shown id is `session`: none or one. Runs on the loop thread."""
    return [each for each in engine.sessions.values() if shown_id(each.session_id) == session]


def _handles(engine: Engine, session: str) -> list[int] | None:
    found = sessions_shown_as(engine, session)
    return list(found[0].values) if found else None


def _array_views(engine: Engine, session: str, handles: Iterable[int]) -> tuple[ArrayView, ...]:
    now_ns = time.monotonic_ns()
    return tuple(
        _array_view(value, now_ns)
        for found in sessions_shown_as(engine, session)
        for handle in handles
        if (value := found.values.get(handle)) is not None
    )


def _array_view(value: Value, now_ns: int) -> ArrayView:
    return ArrayView(
        handle=value.handle,
        dtype=value.spec.dtype.name,
        shape=value.spec.shape,
        bytes=value.size_bytes,
        age_s=max(now_ns - value.made_at_ns, 0) / 1e9,
        base=value.handle if value.base is None else value.base,
        op=None if value.base is None else value.handle - value.base,
        state=value.state.value,
    )


def _queue_view(engine: Engine) -> QueueView:
    by_tenant: Counter[str] = Counter()
    by_digest: Counter[bytes] = Counter()
    for session in engine.sessions.values():
        if session.queue:
            by_tenant[session.tenant] += len(session.queue)
            by_digest.update([row.entry.digest for row in session.queue])
    tenants = [QueuedTenant(tenant, rows, engine.submissions.used_ns(tenant)) for tenant, rows in by_tenant.items()]
    return QueueView(
        rows=by_tenant.total(),
        tenants=tuple(nsmallest(_MOST_LISTED, tenants, key=lambda each: each.device_ns)),
        programs=tuple(QueuedProgram(digest.hex(), rows) for digest, rows in by_digest.most_common(_MOST_LISTED)),
        orders_in_flight=engine.submissions.lanes.outstanding,
    )


def _slow_entry(entry: SlowSubmission) -> SlowEntry:
    return SlowEntry(
        at=datetime.fromtimestamp(entry.ended_at_s, UTC).isoformat(timespec="milliseconds"),
        session=shown_id(entry.session_id),
        program=entry.digest.hex(),
        base=entry.base,
        op=entry.op,
        tier=entry.tier,
        rows=entry.rows,
        ops=entry.ops,
        total_s=entry.total_ns / 1e9,
        phases=SlowPhases(max(entry.total_ns - entry.device_ns, 0) / 1e9, entry.device_ns / 1e9),
    )
