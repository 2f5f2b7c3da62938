"""Writes what a live stream sends: a state as JSON, with records of launches behind it. Pure.

A message is two numbers of 32 bits (least byte first), the lengths of both parts in bytes, and then the parts. The
records are those of `engine.launch_records`, reduced for the pixels that were asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from heapq import nlargest
from typing import Any

from pydantic import TypeAdapter

from fusewire_server.inspect.launches.columns import Rows, seen_with
from fusewire_server.inspect.launches.history import DeviceHistory
from fusewire_server.inspect.launches.steps import Steps
from fusewire_server.inspect.snapshots.program_view import ProgramView
from fusewire_server.inspect.snapshots.session_view import SessionView
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.stats import Stats

LENGTHS = struct.Struct("<II")
MOST_SESSIONS = 1000  # of a state: those that have used most of the device
MOST_PROGRAMS = 200  # of a state: those of most submissions
# The figures of the server that any tenant may see: what says nothing of single others.
_STATS = {
    *("version", "started_at", "backend", "is_ready", "is_draining", "is_held", "sessions", "programs", "queue"),
    *("memory", "rows_per_launch", "devices"),
}
_TOTALS = {"ops", "segments", "rows", "launches", "submissions", "received_bytes", "sent_bytes"}
_OF_THE_QUEUE = {"queued_rows", "next_program"}  # of a session: what only the route of the queue sums up
_SHOWN: dict[str, Any] = {
    "stats": {**dict.fromkeys(_STATS, True), "totals": _TOTALS, "phases": {"device", "queue"}},
    "sessions": {"__all__": {each.name for each in fields(SessionView)} - _OF_THE_QUEUE},
    **dict.fromkeys(("taken_at_ns", "programs", "other_sessions", "steps", "names", "may_operate"), True),
}


@dataclass(frozen=True)
class State:
    """What the state of a message holds. `other_sessions` counts those that are not among the sessions.

    `may_operate` tells whether the watcher's token may call what changes the server.
    """

    taken_at_ns: int
    stats: Stats
    sessions: tuple[SessionView, ...]
    other_sessions: int
    programs: tuple[ProgramView, ...]
    steps: Mapping[str, Mapping[str, float]]
    names: tuple[Mapping[str, Any], ...]
    may_operate: bool


_JSON = TypeAdapter(State)


def message(state: State, rows: Iterable[Rows]) -> bytes:
    """Returns the bytes of a message."""
    state_json = _JSON.dump_json(state, include=_SHOWN)
    records = b"".join([each.tobytes() for each in rows])
    return LENGTHS.pack(len(state_json), len(records)) + state_json + records


def state_of(
    snapshot: Snapshot,
    steps: Mapping[str, Steps],
    names: tuple[Mapping[str, Any], ...],
    tenant: str | None,
    own_programs: Iterable[str],
    *,
    may_operate: bool,
) -> State:
    """Returns the state of a snapshot. For a tenant it has this tenant's sessions and its programs only."""
    mine = [each for each in snapshot.sessions if tenant in {None, each.tenant}]
    sessions = nlargest(MOST_SESSIONS, mine, key=lambda view: view.device_ns)
    own = frozenset(own_programs)
    programs = (each.program for each in snapshot.programs if tenant is None or each.program.digest in own)
    session_ids = {each.session for each in sessions}
    return State(
        snapshot.taken_at_ns,
        snapshot.stats,
        tuple(sessions),
        len(snapshot.sessions) - len(sessions),
        tuple(nlargest(MOST_PROGRAMS, programs, key=lambda view: view.submissions)),
        {session: each._asdict() for session, each in steps.items() if session in session_ids},
        names,
        may_operate,
    )


def seen_by(device: DeviceHistory, rows: Rows, tenant: str | None) -> Rows:
    """Returns the records of a device as somebody sees them who may see one tenant's sessions, or all."""
    return rows if tenant is None else seen_with(rows, device.mask(tenant))


class Names:
    """The names that one stream has been told, so that each message has those that are new or have changed."""

    def __init__(self, tenant: str | None) -> None:
        self._tenant = tenant
        self._sent: dict[int, tuple[int, dict[Any, Any]]] = {}

    def new(self, number: int, device: DeviceHistory, own_programs: Iterable[str]) -> dict[str, Any]:
        """Returns what to tell of the names of a device's records: programs by number, sessions by bit."""
        watch, known = self._sent.get(number, (0, {}))
        if watch != device.watch:
            known = {}
        own = frozenset(own_programs)
        programs = [each for each in device.programs.values() if self._tenant is None or each.digest in own]
        sessions = [each for each in device.sessions.values() if self._tenant in {None, each.tenant}]
        new_programs = {each.number: each[1:] for each in programs if known.get(each.digest) != each}
        new_sessions = {each.bit: each[1:] for each in sessions if each.session not in known}
        known.update({each.digest: each for each in programs})
        known.update({each.session: each for each in sessions})
        self._sent[number] = (device.watch, known)
        return {"device": number, "watch": device.watch, "programs": new_programs, "sessions": new_sessions}
