"""Answers what no snapshot holds: arrays, blocks, what happened last, records of launches. Runs on the engine thread.

Each function does bounded work: it visits the tables that it describes once. A session may have a million arrays, so
the engine thread only copies their handles; the inspection thread finds those of a page.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fusewire_protos.errors import CaseError
from fusewire_server.engine.engine import Engine
from fusewire_server.engine.launch_records import Records
from fusewire_server.inspect.snapshots.details import details_of
from fusewire_server.inspect.views import ArrayView
from fusewire_server.sessions.session import NO_OP, Session, Value
from fusewire_server.sessions.values import unpacked


def session_of(engine: Engine, shown: str) -> Session | None:
    """Returns the session with this shown id, or None."""
    return next((session for session in engine.sessions.values() if session.shown_id == shown), None)


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
    "details": details_of,
    "handles": handles_of,
    "arrays": arrays_of,
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
