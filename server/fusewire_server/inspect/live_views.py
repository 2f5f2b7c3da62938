"""Answers what no snapshot holds: a session's arrays, the pool, the queue, slow segments. Runs on the engine thread.

Each function does bounded work: it visits the tables that it describes once. A session may have a million arrays, so
the engine thread only copies their handles; the inspection thread finds those of a page.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from fusewire_protos.errors import CaseError
from fusewire_server.engine.engine import Engine
from fusewire_server.engine.launch_records import Records
from fusewire_server.inspect.figures import read
from fusewire_server.inspect.snapshots import kernel_waits
from fusewire_server.inspect.snapshots.snapshot import shown_id
from fusewire_server.inspect.views import (
    MOST_LISTED,
    ArrayView,
    EndedSessionView,
    FailureView,
    PoolView,
    QueuedProgram,
    QueuedTenant,
    QueueView,
    SlowSegmentView,
)
from fusewire_server.sessions.session import NO_OP, Session, Value
from fusewire_server.sessions.values import unpacked


def session_of(engine: Engine, shown: str) -> Session | None:
    """Returns the session with this shown id, or None."""
    for session_id, session in engine.sessions.items():
        if shown_id(session_id) == shown:
            return session
    return None


def handles_of(engine: Engine, shown: str) -> list[int] | None:
    """Returns the handles of a session's arrays, in no order. None: no such session.

    Values that the client cannot name have negative handles, and are left out.
    """
    session = session_of(engine, shown)
    return None if session is None else [handle for handle in (*session.values, *session.packed) if handle >= 0]


def arrays_of(engine: Engine, shown: str, handles: Iterable[int]) -> tuple[ArrayView, ...]:
    """Describes those of a session's arrays with these handles that there are still."""
    session = session_of(engine, shown)
    values = [] if session is None else [_value_of(session, handle) for handle in handles]
    now_ns = time.monotonic_ns()
    return tuple(_array_view(value, now_ns) for value in values if value is not None)


def pool_of(engine: Engine) -> PoolView:
    """Describes the memory of the device."""
    return read(PoolView, engine)


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
            oldest_ns = min(oldest_ns, first.waits_since_ns)
    return QueueView(
        rows=tenants.total(),
        held_back_rows=held_back,
        oldest_row_s=(now_ns - oldest_ns) / 1e9,
        submissions=engine.outstanding_submissions,
        is_held=engine.is_held,
        tenants=tuple(QueuedTenant(tenant=tenant, rows=rows) for tenant, rows in tenants.most_common(MOST_LISTED)),
        programs=tuple(
            QueuedProgram(digest=digest.hex(), sessions=sessions)
            for digest, sessions in programs.most_common(MOST_LISTED)
        ),
        kernel_waits=kernel_waits.described(engine.kernel_waits, now_ns),
    )


def slow_segments_of(engine: Engine, limit: int) -> tuple[SlowSegmentView, ...]:
    """Describes the newest slow segments."""
    return tuple([read(SlowSegmentView, segment) for segment in islice(engine.slow_segments, limit)])


def failures_of(engine: Engine, limit: int) -> tuple[FailureView, ...]:
    """Describes the newest failures."""
    return tuple([read(FailureView, each) for each in islice(reversed(engine.counters.recent_failures), limit)])


def ended_sessions_of(engine: Engine, limit: int) -> tuple[EndedSessionView, ...]:
    """Describes the sessions that have ended last."""
    return tuple([read(EndedSessionView, each) for each in islice(reversed(engine.counters.recently_ended), limit)])


def launch_records_of(engine: Engine, positions: Iterable[tuple[int, int, int]], most: int) -> Records:
    """Returns the records of submissions since a position, at most so many of the newest, and has more kept.

    `positions` has the number of a device, the watch and the position, for each device that was read before.
    """
    known = {device: (watch, position) for device, watch, position in positions}
    watch, position = known.get(engine.device_number, (0, 0))
    return engine.launch_records.read(watch, position, most, engine.sessions, time.monotonic_ns())


def end_session(engine: Engine, shown: str) -> bool:
    """Ends a session. Returns False if there is none."""
    session = session_of(engine, shown)
    if session is None:
        return False
    engine.dismiss([session], CaseError("ended_by_operator", "an operator of the server ended this session"))
    return True


def set_log_level(_engine: Engine | None, level: str) -> None:
    """Sets the level of this process's log."""
    logging.getLogger().setLevel(level.upper())


# What may be asked of an engine, and ordered, by name.
ANSWERS: Mapping[str, Callable[..., Any]] = {
    "hold": Engine.hold,
    "release": Engine.unhold,
    "end_session": end_session,
    "set_log_level": set_log_level,
    "handles": handles_of,
    "arrays": arrays_of,
    "pool": pool_of,
    "queue": queue_of,
    "slow_segments": slow_segments_of,
    "failures": failures_of,
    "ended_sessions": ended_sessions_of,
    "launch_records": launch_records_of,
}


def _value_of(session: Session, handle: int) -> Value | None:
    packed = session.packed.get(handle)
    return session.values.get(handle) if packed is None else unpacked(session, packed)


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
