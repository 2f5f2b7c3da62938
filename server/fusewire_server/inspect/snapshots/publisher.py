"""Takes snapshots of the engine's live tables, when somebody asks for one. Runs on the engine thread."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fusewire_server.engine.engine import Engine
from fusewire_server.figures import read
from fusewire_server.host.gpu_health import gpu_health
from fusewire_server.inspect.requests.refusals import INSPECTION_DOOR
from fusewire_server.inspect.snapshots import kernel_waits
from fusewire_server.inspect.snapshots.machine import Machine
from fusewire_server.inspect.snapshots.plan_views import compiled_view
from fusewire_server.inspect.snapshots.program_view import ProgramDetail, ProgramView
from fusewire_server.inspect.snapshots.session_view import SessionView
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.stats import HostMemory, KernelWaits, SessionStates, Stats
from fusewire_server.inspect.snapshots.tenant_account import TenantAccount
from fusewire_server.inspect.snapshots.totals import PhaseTotal
from fusewire_server.inspect.snapshots.wait_reasons import wait_reason
from fusewire_server.programs.counters import DOORS, Counters
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Session, SessionState
from fusewire_server.sessions.tenant_usage import usage_with

_MOST_FAILURES = 3  # of a session
_NO_REFUSALS: Mapping[str, int] = {}


class Publisher:
    """Holds the newest snapshot. The engine thread replaces `snapshot`; any thread may read `snapshot`.

    A publisher describes again only programs that have changed since the last snapshot, because a server may have a
    hundred thousand other programs. An engine has only one publisher, because the publisher clears the program table's
    set of changed programs. `inspection_refusals` counts refused HTTP requests by case; other threads may count on.
    """

    def __init__(self, engine: Engine, version: str, inspection_refusals: Mapping[str, int] = _NO_REFUSALS) -> None:
        self._engine = engine
        self._inspection_refusals = inspection_refusals
        self._version = version
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._programs: dict[ProgramEntry, ProgramDetail] = {}
        self._tiers: Counter[str] = Counter()  # of these
        engine.programs.changed.update(engine.programs.entries.values())
        self._shown: tuple[ProgramDetail, ...] = ()
        self._machine = Machine(engine.config.listen.tls_cert, gpu_health() if engine.device.info.is_gpu else None)
        self.snapshot = self._take()
        self._machine.look_again()  # for the next snapshot, because the server starts its tasks meanwhile

    def publish(self) -> Snapshot:
        """Replaces the snapshot by a new snapshot, and returns this."""
        self.snapshot = self._take()
        return self.snapshot

    def _take(self) -> Snapshot:
        engine = self._engine
        self._show_changed()
        now_ns = time.monotonic_ns()
        self._machine.look(now_ns)
        look = _Look(
            engine, now_ns, self._version, self._started_at, self._machine, dict(self._tiers), self._inspection_refusals
        )
        return Snapshot(
            stats=read(Stats, look),
            sessions=look.views,
            programs=self._shown,
            tenants={tenant: read(TenantAccount, each) for tenant, each in look.usages.items()},
            tenant_device_bytes={
                session.tenant: session.tenant_bytes.device_share.held_bytes for session in look.sessions
            },
            tenant_host_bytes={session.tenant: session.tenant_bytes.size_bytes for session in look.sessions},
            taken_at_ns=now_ns,
        )

    def _show_changed(self) -> None:
        table = self._engine.programs
        for entry in table.changed:
            before = self._programs.get(entry)
            self._programs[entry] = detail = _detail(entry, before)
            self._tiers[str(detail.program.tier)] += 1
            if before is not None:
                self._tiers[str(before.program.tier)] -= 1
        has_dropped = len(self._programs) > len(table.entries)  # each program of the table is among those shown
        if has_dropped:
            self._programs = {entry: self._programs[entry] for entry in table.entries.values()}
            self._tiers = Counter([str(each.program.tier) for each in self._programs.values()])
        if has_dropped or table.changed:
            self._shown = tuple(self._programs.values())
        table.changed.clear()


@dataclass
class _SessionLook:
    """What the figures of a session are read from."""

    session: Session
    now_ns: int
    waits_for: Sequence[str]
    wait_reason: str
    failures: tuple[str, ...]
    host_bytes: int
    device: int

    @property
    def waiting_ns(self) -> int:
        """The time in which its client waited, with that of fetches that are not answered yet."""
        session = self.session
        return session.waiting_ns + (max(self.now_ns - session.waits_since_ns, 0) if session.fetches else 0)


@dataclass
class _Look:
    """What the figures of a server are read from: its engine at one moment."""

    engine: Engine
    now_ns: int
    version: str
    started_at: str
    machine: Machine
    program_tiers: Mapping[str, int]
    inspection_refusals: Mapping[str, int]

    def __post_init__(self) -> None:
        engine = self.engine
        self.counters: Counters = engine.counters
        self.sessions = tuple(engine.sessions.values())
        self.devices = ()
        self.usages = usage_with(engine.usages, self.sessions)
        waits = engine.kernel_waits
        waiting = kernel_waits.ops_by_session(waits)
        self.kernel_waits: KernelWaits = kernel_waits.described(waits, self.now_ns)
        self._failures: dict[str, list[str]] = {}
        for failure in reversed(self.counters.recent_failures):
            self._failures.setdefault(failure.session, []).append(f"{failure.case}: {failure.text}")
        self.views = tuple([self._view(session, waiting.get(session, ())) for session in self.sessions])

    def used(self, name: str) -> int:
        """Returns the sum of what all tenants have used."""
        return sum([getattr(usage, name) for usage in self.usages.values()])

    @property
    def oldest_row_s(self) -> float:
        firsts = [session.queue[0].waits_since_ns for session in self.sessions if session.queue]
        return max(self.now_ns - min(firsts), 0) / 1e9 if firsts else 0.0

    @property
    def states(self) -> SessionStates:
        is_open = sum(session.state is SessionState.OPEN for session in self.sessions)
        return SessionStates(is_open, len(self.sessions) - is_open)

    @property
    def host_memory(self) -> HostMemory:
        engine = self.engine
        memory, sessions = engine.memory, sum(session.host_bytes for session in self.sessions)
        device = 0 if engine.device.info.is_gpu else memory.live_bytes + memory.pool_bytes
        known = sessions + engine.programs.size_bytes + device
        unaccounted = max((self.machine.process.resident_bytes or 0) - known, 0)
        return HostMemory(sessions, engine.programs.size_bytes, device, unaccounted)

    @property
    def refusals(self) -> dict[str, dict[str, int]]:
        refusals: dict[str, dict[str, int]] = {door: {} for door in DOORS}
        for (door, case), count in self.counters.refusals.items():
            refusals[door][case] = count
        return {
            **refusals,
            INSPECTION_DOOR: {case: count for case, count in self.inspection_refusals.items() if count},
        }

    @property
    def device_thread_phase(self) -> PhaseTotal:
        return PhaseTotal(self.counters.submissions, self.engine.device_busy_ns)

    def _view(self, session: Session, waits_for: Sequence[str]) -> SessionView:
        engine = self.engine
        session.tenant_bytes.count(session)
        host_bytes = session.host_bytes + engine.programs.quota.session_bytes(session.session_id)
        reason = wait_reason(session, waits_for, is_held=engine.is_held)
        failures = tuple(self._failures.get(session.shown_id, ())[:_MOST_FAILURES])
        look = _SessionLook(session, self.now_ns, waits_for, reason, failures, host_bytes, engine.device_number)
        return read(SessionView, look)


def _detail(entry: ProgramEntry, before: ProgramDetail | None) -> ProgramDetail:
    """Describes the present state of a program. Reuses the description of its plan, because a plan does not change."""
    compiled = before.compiled if before is not None else None
    if compiled is None and entry.loaded is not None:
        compiled = compiled_view(entry.loaded.plan, entry.program)
    return ProgramDetail(read(ProgramView, entry), compiled)
