"""Defines the snapshot of the engine's tables: plain, immutable data that any thread may read.

The engine thread replaces one reference by a new Snapshot. No other thread reads the engine's live tables. Counts and
times start when the server starts; those of a session start with the session, and those of a program start with its
first use. `_ns` (nanoseconds) and `_bytes` are the units.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fusewire_server.figures import Described, counter, fact, gauge, joined, part, together
from fusewire_server.inspect.snapshots.program_view import ProgramDetail
from fusewire_server.inspect.snapshots.session_view import SessionView
from fusewire_server.inspect.snapshots.stats import Stats
from fusewire_server.inspect.snapshots.tenant_account import TenantAccount


def _programs(lists: Sequence[Iterable[ProgramDetail]]) -> tuple[ProgramDetail, ...]:
    """Returns each program once: as it is where it has come furthest, with the counts of all."""
    known: dict[str, list[ProgramDetail]] = {}
    for detail in together(lists):
        known.setdefault(detail.program.digest, []).append(detail)
    return tuple([joined(sorted(each, key=lambda detail: -detail.program.tier)) for each in known.values()])


@dataclass(frozen=True)
class Snapshot(Described):
    """All data that inspection can show, as they were at one moment."""

    stats: Stats = part()
    sessions: tuple[SessionView, ...] = gauge(join=together, default=())
    programs: tuple[ProgramDetail, ...] = gauge(join=_programs, default=())
    tenants: Mapping[str, TenantAccount] = counter(label="tenant", default={})
    tenant_host_bytes: Mapping[str, int] = gauge(default={})  # a program of several sessions counts once
    tenant_device_bytes: Mapping[str, int] = gauge(default={})
    taken_at_ns: int = fact(join=min, default=0)  # on the monotonic clock
