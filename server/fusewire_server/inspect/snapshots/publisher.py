"""Takes snapshots of the engine's live tables, when somebody asks for one. Runs on the loop thread."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from fusewire_protos.frames import PROTOCOL_VERSION
from fusewire_server.engine.engine import Engine
from fusewire_server.host.process_usage import process_usage
from fusewire_server.inspect.requests.refusals import INSPECTION_DOOR
from fusewire_server.inspect.snapshots import kernel_waits
from fusewire_server.inspect.snapshots.snapshot import (
    BackendView,
    Bucket,
    Coalescing,
    Compilation,
    Histogram,
    HostMemory,
    KernelWaits,
    Launching,
    Memory,
    Phases,
    PhaseTotal,
    Process,
    ProgramCache,
    ProgramDetail,
    ProgramView,
    Queue,
    SessionBytes,
    SessionTotals,
    SessionView,
    Snapshot,
    Stats,
    Totals,
    compiled_view,
    shown_id,
)
from fusewire_server.programs.counters import DOORS, Counters, Phase
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Session
from fusewire_server.sessions.tenant_times import times_by_tenant

_PROCESS_READ_EVERY_NS = 1_000_000_000  # reading takes the loop thread a tenth of a millisecond
_NO_REFUSALS: Mapping[str, int] = {}


class Publisher:
    """Holds the newest snapshot. The loop thread replaces `snapshot`; any thread may read `snapshot`.

    A publisher describes again only programs that have changed since the last snapshot, because a server may have a
    hundred thousand other programs. An engine has only one publisher, because the publisher clears the program table's
    set of changed programs. `inspection_refusals` counts refused HTTP requests by case; other threads may count on.
    """

    def __init__(self, engine: Engine, version: str, inspection_refusals: Mapping[str, int] = _NO_REFUSALS) -> None:
        self._engine = engine
        self._inspection_refusals = inspection_refusals
        self._version = version
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._programs = {entry: _detail(entry, None) for entry in engine.programs.entries.values()}
        engine.programs.changed.clear()
        self._shown = tuple(self._programs.values())
        self._process = Process()
        self._process_read_at_ns = 0
        self.snapshot = self._take()
        self._process_read_at_ns = 0  # read again for the next snapshot, because the server starts its tasks meanwhile

    def publish(self) -> Snapshot:
        """Replaces the snapshot by a new snapshot, and returns this."""
        self.snapshot = self._take()
        return self.snapshot

    def _take(self) -> Snapshot:
        engine = self._engine
        self._show_changed()
        now_ns = time.monotonic_ns()
        if now_ns - self._process_read_at_ns > _PROCESS_READ_EVERY_NS:
            self._process = Process(*process_usage(), tasks=len(asyncio.all_tasks()))
            self._process_read_at_ns = now_ns
        waits = engine.kernel_waits
        waiting = kernel_waits.ops_by_session(waits)
        views = tuple(self._session_view(session, now_ns, waiting) for session in engine.sessions.values())
        return Snapshot(
            stats=self._stats(now_ns, views, kernel_waits.described(waits, now_ns)),
            sessions=views,
            programs=self._shown,
            tenant_times=times_by_tenant(engine.ended.times, engine.sessions.values()),
            tenant_device_bytes={
                session.tenant: session.tenant_bytes.device_share.held_bytes for session in engine.sessions.values()
            },
            tenant_host_bytes={session.tenant: session.tenant_bytes.size_bytes for session in engine.sessions.values()},
            taken_at_ns=now_ns,
        )

    def _session_view(self, session: Session, now_ns: int, waiting: Mapping[Session, Sequence[str]]) -> SessionView:
        session.tenant_bytes.count(session)
        host_bytes = session.host_bytes + self._engine.programs.quota.session_bytes(session.session_id)
        return _session_view(session, now_ns, waiting.get(session, ()), host_bytes, self._engine.device_number)

    def _show_changed(self) -> None:
        table = self._engine.programs
        for entry in table.changed:
            self._programs[entry] = _detail(entry, self._programs.get(entry))
        has_dropped = len(self._programs) > len(table.entries)  # each program of the table is among those shown
        if has_dropped:
            self._programs = {entry: self._programs[entry] for entry in table.entries.values()}
        if has_dropped or table.changed:
            self._shown = tuple(self._programs.values())
        table.changed.clear()

    def _stats(self, now_ns: int, views: Sequence[SessionView], waits: KernelWaits) -> Stats:
        engine, sessions = self._engine, self._engine.sessions.values()
        info, counters, memory = engine.device.info, engine.counters, engine.memory
        return Stats(
            instance=engine.instance.hex(),
            version=self._version,
            started_at=self._started_at,
            backend=BackendView(
                info.backend, info.name, info.memory_bytes, info.detail, has_compiler=info.has_compiler
            ),
            is_ready=engine.is_ready,
            is_draining=engine.is_draining,
            trouble=engine.trouble,
            is_held=engine.is_held,
            sessions=len(sessions),
            sessions_without_credit=sum(session.has_used_up_credit for session in sessions),
            programs=len(engine.programs.entries),
            program_bytes=engine.programs.size_bytes,
            queue=_queue(sessions, now_ns),
            kernel_waits=waits,
            session_bytes=_session_bytes(sessions, views),
            host_memory=self._host_memory(),
            totals=_totals(engine, self._inspection_refusals),
            phases=_phases(engine),
            launching=Launching(*engine.device.launch_counts()),
            memory=Memory(
                memory.live_bytes, memory.peak_bytes, memory.pool_bytes, memory.donations, memory.donated_bytes
            ),
            process=self._process,
            rows_per_launch=_histogram(counters.rows_per_submission, counters.rows),
            ops_per_launch=_histogram(counters.ops_per_launch, counters.ops),
        )

    def _host_memory(self) -> HostMemory:
        engine = self._engine
        memory, sessions = engine.memory, sum(session.host_bytes for session in engine.sessions.values())
        device = 0 if engine.device.info.is_gpu else memory.live_bytes + memory.pool_bytes
        known = sessions + engine.programs.size_bytes + device
        unaccounted = max((self._process.resident_bytes or 0) - known, 0)
        return HostMemory(sessions, engine.programs.size_bytes, device, unaccounted)


def _queue(sessions: Iterable[Session], now_ns: int) -> Queue:
    firsts = [session.queue[0].waits_since_ns for session in sessions if session.queue]
    return Queue(
        ready=sum(len(session.queue) for session in sessions),
        held_back=sum(len(session.held_back) for session in sessions),
        oldest_s=max(now_ns - min(firsts), 0) / 1e9 if firsts else 0.0,
    )


def _session_bytes(sessions: Iterable[Session], views: Iterable[SessionView]) -> SessionBytes:
    return SessionBytes(
        live=sum(view.live_bytes for view in views),
        in_flight=sum(view.in_flight_bytes for view in views),
        unread=sum(view.unread_bytes for view in views),
        uploading=sum(session.uploading_bytes for session in sessions),
    )


def _refusals(counters: Counters, of_inspection: Mapping[str, int]) -> dict[str, dict[str, int]]:
    refusals: dict[str, dict[str, int]] = {door: {} for door in DOORS}
    for (door, case), count in counters.refusals.items():
        refusals[door][case] = count
    return {**refusals, INSPECTION_DOOR: {case: count for case, count in of_inspection.items() if count}}


def _totals(engine: Engine, inspection_refusals: Mapping[str, int]) -> Totals:
    counters, sessions, programs = engine.counters, engine.sessions.values(), engine.programs
    return Totals(
        ops=counters.ops,
        segments=sum(session.admitted.segments for session in sessions) + engine.ended.segments,
        rows=counters.rows,
        launches=counters.launches,
        tier0_launches=counters.tier0_launches,
        submissions=counters.submissions,
        received_bytes=sum(session.bytes_in for session in sessions) + engine.ended.bytes_in,
        sent_bytes=sum(session.bytes_out for session in sessions) + engine.ended.bytes_out,
        coalescing=Coalescing(counters.unlimited_submissions, counters.unlimited_rows, counters.ready_sessions),
        sessions=SessionTotals(counters.sessions_opened, counters.sessions_resumed, dict(counters.sessions_ended)),
        credit_used_up=sum(session.credit_used_up for session in sessions) + engine.ended.credit_used_up,
        program_cache=ProgramCache(programs.hits, programs.misses, programs.evictions),
        batches=dict(counters.batches),
        refusals=_refusals(counters, inspection_refusals),
        failures=dict(counters.failures),
        compilation=Compilation(counters.plans, counters.plans_refused, counters.kernels, counters.reused),
    )


def _phases(engine: Engine) -> Phases:
    counters = engine.counters
    return Phases(
        decode=_phase_total(counters.decode),
        queue=_phase_total(counters.queue),
        plan=_phase_total(counters.plan),
        compile=_phase_total(counters.compile),
        device_thread=PhaseTotal(counters.submissions, engine.device_busy_ns),
        device=_phase_total(counters.device),
        copy_out=_phase_total(counters.copy_out),
    )


def _session_view(session: Session, now_ns: int, waits_for: Sequence[str], host_bytes: int, device: int) -> SessionView:
    in_flight = session.in_flight
    return SessionView(
        session=shown_id(session.session_id),
        tenant=session.tenant,
        peer=session.peer,
        client=session.client,
        protocol_version=PROTOCOL_VERSION,
        epoch=session.epoch,
        state=session.state.value,
        ops=session.ops_total,
        segments=session.completed.segments,
        received_bytes=session.bytes_in,
        sent_bytes=session.bytes_out,
        in_flight_ops=in_flight.ops,
        in_flight_bytes=in_flight.bytes,
        in_flight_segments=in_flight.segments,
        live_handles=session.values_held + session.failed.count,
        live_bytes=session.live_bytes,
        unread_bytes=session.answers.unread_bytes,
        host_bytes=host_bytes,
        device_ns=session.device_ns,
        loop_ns=session.loop_ns,
        idle_s=max(now_ns - session.heard_at_ns, 0) / 1e9,
        waits_for=tuple(waits_for),
        device=device,
    )


def _detail(entry: ProgramEntry, before: ProgramDetail | None) -> ProgramDetail:
    """Describes the present state of a program. Reuses the description of its plan, because a plan does not change."""
    compiled = before.compiled if before is not None else None
    if compiled is None and entry.loaded is not None:
        compiled = compiled_view(entry.loaded.plan, entry.program.op_names)
    return ProgramDetail(_program_view(entry), compiled)


def _program_view(entry: ProgramEntry) -> ProgramView:
    loaded = entry.loaded
    launching = Launching() if loaded is None else Launching(*loaded.launch_counts)
    return ProgramView(
        digest=entry.digest.hex(),
        is_fragment=entry.is_fragment,
        ops=entry.program.op_count,
        tier=2 if launching.graphs else entry.tier,
        state=entry.state.value,
        hits=entry.uses,
        rows=entry.rows,
        submissions=entry.submissions,
        row_ns=entry.row_ns,
        planning_ns=entry.planning_ns,
        compiling_ns=entry.compiling_ns,
        refusal=entry.refusal,
        rows_per_launch=_histogram(entry.rows_per_submission, entry.rows),
        form="ops" if loaded is None else loaded.launch_counts.form,
        launching=launching,
        why_no_graph="" if loaded is None else loaded.why_no_graph,
        why_not_persistent="" if loaded is None else loaded.why_not_persistent,
    )


def _phase_total(phase: Phase) -> PhaseTotal:
    return PhaseTotal(phase.count, phase.total_ns)


def _histogram(counts: Counter[int], total: int) -> Histogram:
    return Histogram(tuple(Bucket(at_most, counts[at_most]) for at_most in sorted(counts)), total)
