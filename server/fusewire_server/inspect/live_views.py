"""Describes what no snapshot holds: a session's arrays, the pool, the queue, slow segments. Runs on the loop thread.

Each function does bounded work: it visits the tables that it describes once, and describes at most `limit` entries.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from heapq import nsmallest
from itertools import islice
from typing import NamedTuple

from fusewire_server.engine.engine import Engine
from fusewire_server.inspect.snapshot import shown_id
from fusewire_server.inspect.views import (
    ArrayView,
    PoolView,
    QueuedProgram,
    QueuedTenant,
    QueueView,
    SlowSegmentView,
)
from fusewire_server.programs.slow_log import SlowSegment
from fusewire_server.sessions.session import NO_OP, Session, Value

_MOST_LISTED = 1000  # programs and tenants of the queue


class Arrays(NamedTuple):
    """A page of arrays. `following` is the handle after which the next page begins, or None."""

    arrays: tuple[ArrayView, ...]
    following: int | None


def session_of(engine: Engine, shown: str) -> Session | None:
    """Returns the session with this shown id, or None."""
    for session_id, session in engine.sessions.items():
        if shown_id(session_id) == shown:
            return session
    return None


def arrays_of(engine: Engine, shown: str, *, after: int, limit: int) -> Arrays | None:
    """Describes the `limit` arrays of a session with the smallest handles above `after`. None: no such session."""
    session = session_of(engine, shown)
    if session is None:
        return None
    now_ns = time.monotonic_ns()
    handles = nsmallest(limit + 1, (handle for handle in session.values if handle > after))
    shown_handles = handles[:limit]
    return Arrays(
        tuple(_array_view(session.values[handle], now_ns) for handle in shown_handles),
        shown_handles[-1] if len(handles) > limit else None,
    )


def pool_of(engine: Engine) -> PoolView:
    """Describes the memory of the device."""
    memory = engine.memory
    return PoolView(
        device_memory_bytes=engine.device.info.memory_bytes,
        live_bytes=memory.live_bytes,
        peak_bytes=memory.peak_bytes,
        pool_bytes=memory.pool_bytes,
        free_bytes=max(memory.pool_bytes - memory.live_bytes, 0),
        donations=memory.donations,
        donated_bytes=memory.donated_bytes,
    )


def queue_of(engine: Engine) -> QueueView:
    """Describes the rows that wait for the device, by tenant and by the program that each session runs next."""
    now_ns = time.monotonic_ns()
    tenants: Counter[str] = Counter()
    programs: Counter[bytes] = Counter()
    held_back, oldest_ns = 0, now_ns
    for session in engine.sessions.values():
        held_back += len(session.held_back)
        if session.queue:
            first = session.queue[0]
            tenants[session.tenant] += len(session.queue)
            programs[first.entry.digest] += 1
            oldest_ns = min(oldest_ns, first.queued_at_ns)
    return QueueView(
        rows=tenants.total(),
        held_back_rows=held_back,
        oldest_row_s=(now_ns - oldest_ns) / 1e9,
        submissions=engine.outstanding_submissions,
        is_held=engine.is_held,
        tenants=tuple(QueuedTenant(tenant=tenant, rows=rows) for tenant, rows in tenants.most_common(_MOST_LISTED)),
        programs=tuple(
            QueuedProgram(digest=digest.hex(), sessions=sessions)
            for digest, sessions in programs.most_common(_MOST_LISTED)
        ),
    )


def slow_segments_of(engine: Engine, limit: int) -> tuple[SlowSegmentView, ...]:
    """Describes the newest slow segments."""
    return tuple(_slow_segment_view(segment) for segment in islice(engine.slow_segments, limit))


def _array_view(value: Value, now_ns: int) -> ArrayView:
    is_computed = value.op_index != NO_OP
    return ArrayView(
        handle=value.handle,
        dtype=value.spec.dtype.name,
        shape=value.spec.shape,
        bytes=value.size_bytes,
        state=value.state.value,
        age_s=max(now_ns - value.made_at_ns, 0) / 1e9,
        base=value.handle - value.op_index if is_computed else None,
        op=value.op_index if is_computed else None,
    )


def _slow_segment_view(segment: SlowSegment) -> SlowSegmentView:
    return SlowSegmentView(
        at=datetime.fromtimestamp(segment.ended_at_s, UTC).isoformat(timespec="milliseconds"),
        session=shown_id(segment.session_id),
        program=segment.digest.hex(),
        base=segment.base,
        ops=segment.ops,
        rows=segment.rows,
        total_s=segment.total_ns / 1e9,
        queue_s=segment.queue_ns / 1e9,
        device_s=segment.device_ns / 1e9,
    )
