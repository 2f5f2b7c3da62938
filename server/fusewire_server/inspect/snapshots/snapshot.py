"""Defines the snapshot of the engine's tables: plain, immutable data that any thread may read.

The engine thread replaces one reference by a new Snapshot. No other thread reads the engine's live tables. Counts and
times start when the server starts; those of a session start with the session, and those of a program start with its
first use. `_ns` (nanoseconds) and `_bytes` are the units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import nan
from operator import attrgetter
from typing import Any

from fusewire_protos.errors import CASES
from fusewire_protos.frames import PROTOCOL_VERSION
from fusewire_server.figures import Described, counter, fact, gauge, itself, joined, least, part, together
from fusewire_server.host.gpu_health import Gpu
from fusewire_server.host.process_usage import Process
from fusewire_server.inspect.requests.refusals import CASES as INSPECTION_CASES
from fusewire_server.inspect.requests.refusals import INSPECTION_DOOR
from fusewire_server.inspect.snapshots.plan_views import CompiledView
from fusewire_server.programs.counters import (
    END_REASONS,
    FAILURES,
    PLAN_REFUSALS,
    SESSION_DOOR,
    TOKEN_DOOR,
    TRANSFER_DOOR,
)
from fusewire_server.scheduling.coalescer import BatchEnd

_MOST_LISTED = 100  # waits for kernels
_REFUSALS = {  # the cases of each door
    TOKEN_DOOR: ("unauthenticated",),
    SESSION_DOOR: FAILURES,
    TRANSFER_DOOR: FAILURES,
    INSPECTION_DOOR: INSPECTION_CASES,
}
_ROWS_ENDS = tuple([2**power for power in range(8)])  # of buckets
_LATENCY_ENDS = tuple([2**power for power in range(13, 38, 2)])  # in ns: from 8 µs to 137 s
_OPS_ENDS = tuple([2**power for power in range(14)])


def sum_of(name: str, count: Callable[[Any], int] = int) -> Callable[[Any], int]:
    """Reads the sum of a figure of all sessions."""
    value = attrgetter(name)
    return lambda look: sum([count(value(session)) for session in look.sessions])


def _latency(phase: str) -> Any:
    return counter(
        "latency_seconds",
        lambda usage: _durations(getattr(usage, phase)),
        labels={"phase": phase, "le": _LATENCY_ENDS},
        default=Histogram(),
    )


def _durations(durations: Any) -> Histogram:
    buckets = [Bucket(1 << bits, count) for bits, count in enumerate(durations.counts) if count]
    return Histogram(tuple(buckets), durations.total_ns)


def _or_nan(name: str) -> Callable[[Any], float]:
    """Tells a metric of what may be unknown. An alert on NaN stays quiet."""
    return lambda record: nan if getattr(record, name) is None else getattr(record, name)


def _next_program(look: Any) -> str:
    return look.session.queue[0].entry.digest.hex() if look.session.queue else ""


def _device_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} × {names[0]}"


def _buckets(lists: Sequence[Sequence[Bucket]]) -> tuple[Bucket, ...]:
    counts: dict[int, int] = {}
    for bucket in together(lists):
        counts[bucket.at_most] = counts.get(bucket.at_most, 0) + bucket.count
    return tuple([Bucket(end, counts[end]) for end in sorted(counts)])


def _longest(lists: Sequence[Sequence[KernelWaitView]]) -> tuple[KernelWaitView, ...]:
    return tuple(sorted(together(lists), key=attrgetter("waited_s"), reverse=True)[:_MOST_LISTED])


def _troubles(texts: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))


def _form(entry: Any) -> str:
    return "ops" if entry.loaded is None else entry.loaded.launch_counts.form


def _launches(entry: Any) -> Any:
    return Launching() if entry.loaded is None else entry.loaded.launch_counts


def _programs(lists: Sequence[Iterable[ProgramDetail]]) -> tuple[ProgramDetail, ...]:
    """Returns each program once: as it is where it has come furthest, with the counts of all."""
    known: dict[str, list[ProgramDetail]] = {}
    for detail in together(lists):
        known.setdefault(detail.program.digest, []).append(detail)
    return tuple([joined(sorted(each, key=lambda detail: -detail.program.tier)) for each in known.values()])


@dataclass(frozen=True)
class BackendView(Described):
    """The device that runs programs."""

    name: str = fact(read="backend")
    """Name of the backend: cpu, cuda or null."""
    device: str = fact(read="name", join=_device_names)
    """Name of the device."""
    memory_bytes: int = fact("device_memory_size_bytes", join=sum, default=0)
    """Memory of the device in bytes."""
    detail: str = fact()
    """Why the device was chosen, and which features it lacks."""
    has_compiler: bool = fact(join=all, default=False)
    """Whether programs are compiled. If not, every program runs op by op."""


@dataclass(frozen=True)
class Bucket(Described):
    """The number of values that are at most `at_most` and greater than the previous bucket's `at_most`."""

    at_most: int = fact(default=0)
    """Greatest value of the bucket."""
    count: int = counter()
    """Number of values in the bucket."""


@dataclass(frozen=True)
class Histogram(Described):
    """Positive whole numbers, counted in buckets."""

    buckets: tuple[Bucket, ...] = counter(join=_buckets, default=())
    """The buckets, ascending. Each ends at a power of two."""
    total: int = counter()
    """Sum of all values."""


@dataclass(frozen=True)
class PhaseTotal(Described):
    """The number of times that a phase ran, and the total time of the phase."""

    count: int = counter("phase_runs")
    """Number of times that the phase ran."""
    total_ns: int = counter("phase_seconds")
    """Total time of the phase in ns."""


@dataclass(frozen=True)
class Phases(Described):
    """Time by phase, in the order in which work passes through the phases."""

    decode: PhaseTotal = part(PhaseTotal(), "counters.decode", label="phase")
    """Applying the entries of frames."""
    queue: PhaseTotal = part(PhaseTotal(), "counters.queue", label="phase")
    """Waiting of rows, from their coming to their order."""
    plan: PhaseTotal = part(PhaseTotal(), "counters.plan", label="phase")
    """Planning programs."""
    compile: PhaseTotal = part(PhaseTotal(), "counters.compile", label="phase")
    """Compiling the kernels of plans."""
    device_thread: PhaseTotal = part(PhaseTotal(), "device_thread_phase", label="phase")
    """All work of the device thread, transfers and loading included. `count` counts submissions."""
    device: PhaseTotal = part(PhaseTotal(), "counters.device", label="phase")
    """Running submissions on the device."""
    copy_out: PhaseTotal = part(PhaseTotal(), "counters.copy_out", label="phase")
    """Bringing fetched values to the host."""


@dataclass(frozen=True)
class Compilation(Described):
    """The planner's work. A program that differs from a known one only in sizes gets a new plan but no new kernels."""

    plans: int = counter("plans", labels={"result": "made"})
    """Number of plans made."""
    plans_refused: int = counter("plans", labels={"result": "refused"})
    """Number of programs that got no plan."""
    refusals: Mapping[str, int] = counter(
        "plan_refusals",
        lambda counters: dict(counters.plan_refusals),
        labels={"cause": PLAN_REFUSALS},
        default={},
    )
    """Number of programs and ops that got no plan, by cause: the `program`, or the `machine`, which is asked again."""
    kernels_compiled: int = counter("kernels", "kernels", labels={"origin": "compiler"})
    """Number of kernels compiled for a plan."""
    kernels_reused: int = counter("kernels", "reused", labels={"origin": "cache"})
    """Number of kernels that were compiled before the plan."""


@dataclass(frozen=True)
class Coalescing(Described):
    """Submissions that no limit on rows, memory or time made smaller.

    `rows` is smaller than `ready_sessions` only if sessions were ready in another lane.
    """

    submissions: int = counter(read="unlimited_submissions")
    """Number of submissions that no limit made smaller."""
    rows: int = counter("unlimited_rows", "unlimited_rows")
    """Number of rows of submissions that no limit made smaller."""
    ready_sessions: int = counter("ready_rows")
    """Number of sessions that were ready with the program of a submission that no limit made smaller."""


@dataclass(frozen=True)
class SessionTotals(Described):
    """The sessions that have been opened, resumed and ended; those that have ended by reason.

    A reason is the name of a failure, or `goodbye` (the client has ended it), `grace_passed` (its connection broke and
    the client did not come back in time), `replaced` (it was detached, and a new session needed its place) or `server`.
    """

    opened: int = counter("sessions_opened", "sessions_opened")
    """Number of sessions opened."""
    resumed: int = counter("sessions_resumed", "sessions_resumed")
    """Number of connections that resumed a session."""
    ended: Mapping[str, int] = counter(
        "sessions_ended", lambda counters: dict(counters.sessions_ended), labels={"reason": END_REASONS}, default={}
    )
    """Number of sessions ended, by reason."""


@dataclass(frozen=True)
class ProgramCache(Described):
    """Programs that came."""

    hits: int = counter("program_lookups", labels={"result": "hit"})
    """Number of programs that were known."""
    misses: int = counter("program_lookups", labels={"result": "miss"})
    """Number of programs that were not known."""
    evictions: int = counter("program_evictions")
    """Number of programs dropped to make room."""


@dataclass(frozen=True)
class Totals(Described):
    """The server's work. `failures` counts failures by the name of their case.

    `segments` counts all segments that came. `rows` counts the rows of all submissions that the device has completed,
    failed rows included; a loop is a row of each of its slices. `tier0_launches` are those of `launches` that ran one
    op.

    `credit_used_up` counts segments and uploads after which their session had no credit for another one like them. The
    client then waits until the device completes some of its work; only the client knows whether it had more to send.

    `batches` counts batches of rows by why they have no more rows: `alone` (no other session had a row of the program),
    `everybody` (all ready sessions joined), `lane` (others were ready in another lane), or the limit `rows`, `memory`
    or `time`. `refusals` counts refused calls by door and case. The doors are `token` (any call without a valid token),
    `session` (at the hello), `transfer` (uploads and downloads) and `inspection` (HTTP requests).
    """

    ops: int = counter("ops", "counters.ops")
    """Number of ops that the device has completed."""
    segments: int = counter("segments", lambda look: look.used("segments"))
    """Number of segments that came."""
    rows: int = counter("rows", "counters.rows")
    """Number of rows of completed submissions; a loop is a row of each of its slices."""
    launches: int = counter(
        "launches",
        "counters.launches",
        labels={"tier": "1"},
        told=lambda totals: totals.launches - totals.tier0_launches,
    )
    """Number of kernel launches."""
    tier0_launches: int = counter("launches", "counters.tier0_launches", labels={"tier": "0"})
    """Number of launches that ran one op."""
    submissions: int = counter("submissions", "counters.submissions")
    """Number of submissions that the device has completed."""
    received_bytes: int = counter("received_bytes", lambda look: look.used("received_bytes"))
    """Bytes of frames and uploads from clients."""
    sent_bytes: int = counter("sent_bytes", lambda look: look.used("sent_bytes"))
    """Bytes of frames and downloads to clients."""
    coalescing: Coalescing = part(Coalescing(), "counters")
    """How many sessions shared submissions."""
    sessions: SessionTotals = part(SessionTotals(), "counters")
    """Sessions opened, resumed and ended."""
    credit_used_up: int = counter("credit_used_up", lambda look: look.used("credit_used_up"))
    """Number of segments and uploads after which their session had no credit for another one like them."""
    program_cache: ProgramCache = part(ProgramCache(), "engine.programs")
    """Programs that came."""
    batches: Mapping[str, int] = counter(
        "batches",
        lambda look: dict(look.counters.batches),
        labels={"ended_by": [end.value for end in BatchEnd]},
        default={},
    )
    """Number of batches of rows, by why they have no more rows."""
    refusals: Mapping[str, Mapping[str, int]] = counter(
        "refusals", labels={"door": _REFUSALS, "case": None}, default={}
    )
    """Number of refused calls, by door and case."""
    failures: Mapping[str, int] = counter(
        "failures",
        lambda look: dict(look.counters.failures),
        labels={"case": [case.name for case in CASES]},
        default={},
    )
    """Number of failures by the name of their case."""
    compilation: Compilation = part(Compilation(), "counters")
    """The planner's work."""


@dataclass(frozen=True)
class Memory(Described):
    """The memory of the device."""

    live_bytes: int = gauge("device_memory_bytes", labels={"kind": "live"})
    """Bytes of the blocks of all values now. A block may be larger than its value."""
    peak_bytes: int = gauge("device_memory_bytes", labels={"kind": "peak"})
    """Most bytes of all values at once."""
    pool_bytes: int = gauge("device_memory_bytes", labels={"kind": "pool"})
    """Free bytes that the device's pool keeps for later allocations."""
    donations: int = counter("donations")
    """Number of results written over inputs."""
    donated_bytes: int = counter("donated_bytes")
    """Bytes of results written over inputs."""


@dataclass(frozen=True)
class Launching(Described):
    """How the device has launched many kernels or iterations by one call."""

    persistent_launches: int = counter("persistent_launches")
    """Number of launches that ran many iterations each."""
    graphs: int = gauge("graphs")
    """Number of captured graphs that are kept."""
    captured: int = counter("graphs_captured")
    """Number of graphs that were captured."""
    evicted: int = counter("graphs_evicted")
    """Number of graphs dropped to make room."""


@dataclass(frozen=True)
class Queue(Described):
    """Rows that wait."""

    ready: int = gauge("queued_rows", sum_of("queue", len), labels={"state": "ready"})
    """Number of rows that could run."""
    held_back: int = gauge("queued_rows", sum_of("held_back", len), labels={"state": "held_back"})
    """Number of rows that wait for uploads, or for results of such rows."""
    oldest_s: float = gauge("queue_oldest_seconds", "oldest_row_s", join=max)
    """Age in s of the oldest row that is the next of its session."""


@dataclass(frozen=True)
class KernelWaitView(Described):
    """Rows that wait until the kernel of an op has been compiled. Nothing of their sessions has failed."""

    op: str
    """Name of the op."""
    waiting_sessions: int
    """Number of sessions of these rows."""
    sessions: tuple[str, ...]
    """Shown ids of these sessions, at most 100."""
    waited_s: float
    """Time in s since the first row came to wait for the kernel."""
    refusal: str
    """Why the last attempt at the kernel failed, so that it is made again after a pause. Empty if none has failed."""


@dataclass(frozen=True)
class KernelWaits(Described):
    """The kernels of single ops that rows wait for. A row waits if nobody has ever compiled a kernel that it needs."""

    kernels: int = gauge("kernel_waits")
    """Number of kernels of single ops that rows wait for."""
    sessions: int = gauge("kernel_wait_sessions")
    """Number of sessions whose rows wait for kernels of single ops."""
    oldest_s: float = gauge("kernel_wait_oldest_seconds", join=max)
    """Time in s of the longest wait for a kernel."""
    oldest: tuple[KernelWaitView, ...] = gauge(join=_longest, default=())
    """The longest waits, at most 100, the longest first."""


@dataclass(frozen=True)
class SessionStates(Described):
    """Sessions by state."""

    open: int = gauge("sessions", labels={"state": "open"})
    """Number of sessions that have a connection."""
    detached: int = gauge("sessions", labels={"state": "detached"})
    """Number of sessions whose connection broke, and that wait to be resumed."""


@dataclass(frozen=True)
class InFlight(Described):
    """Work of all sessions that the device has not completed."""

    ops: int = gauge("in_flight_ops", sum_of("in_flight.ops"))
    """Ops of all sessions in flight."""
    segments: int = gauge("in_flight_segments", sum_of("in_flight.segments"))
    """Segments of all sessions in flight."""
    submissions: int = gauge(read="engine.outstanding_submissions")
    """Submissions that the device has not completed."""


@dataclass(frozen=True)
class SessionBytes(Described):
    """Bytes of all sessions."""

    live: int = gauge("session_bytes", sum_of("live_bytes"), labels={"kind": "live"})
    """Bytes of values, failed ones included, as `limits.live_bytes` counts them."""
    in_flight: int = gauge("session_bytes", sum_of("in_flight.bytes"), labels={"kind": "in_flight"})
    """Bytes of results and inline uploads for which credit is taken."""
    unread: int = gauge("session_bytes", sum_of("answers.unread_bytes"), labels={"kind": "unread"})
    """Bytes of results on the host that clients have not taken."""
    uploading: int = gauge("session_bytes", sum_of("uploading_bytes"), labels={"kind": "uploading"})
    """Bytes of host memory of uploads that are arriving or not yet written."""


@dataclass(frozen=True)
class HostMemory(Described):
    """The memory of the server process by what it is for, as far as that is known. Estimated from counts of items."""

    sessions: int = gauge("host_memory_bytes", labels={"kind": "sessions"})
    """Bytes of tables, rows, failures, answers and uploads of all sessions."""
    programs: int = gauge("host_memory_bytes", labels={"kind": "programs"})
    """Bytes of all known programs."""
    values: int = gauge("host_memory_bytes", labels={"kind": "values"})
    """Bytes of values and of the free pool if the device's memory is that of the host, else 0."""
    unaccounted: int = gauge("host_memory_bytes", labels={"kind": "unaccounted"})
    """Resident bytes beyond these: the interpreter, its libraries, kernels, and what no owner is known of."""


@dataclass(frozen=True)
class DeviceView(Described):
    """One of several devices, which each have an engine process."""

    number: int
    """Number of the device, by which `connect` may ask for it."""
    name: str = fact(read="snapshot.stats.backend.device", default="")
    """Name of the device. Empty before it has begun."""
    is_ready: bool = gauge("devices_ready", "snapshot.stats.is_ready", default=False)
    """Whether the device takes sessions."""
    trouble: str = gauge(read="snapshot.stats.trouble", default="")
    """Why it takes none. Empty if it does."""
    sessions: int = gauge("devices_sessions", "snapshot.stats.sessions")
    """Number of sessions of the device, detached ones included."""
    memory_bytes: int = fact(read="snapshot.stats.backend.memory_bytes", default=0)
    """Memory of the device in bytes."""
    live_bytes: int = gauge("devices_live_bytes", "snapshot.stats.memory.live_bytes")
    """Bytes of the blocks of all values now."""
    pool_bytes: int = gauge("devices_pool_bytes", "snapshot.stats.memory.pool_bytes")
    """Free bytes that the device's pool keeps for later allocations."""
    busy_ns: int = counter("devices_busy_seconds", "snapshot.stats.phases.device.total_ns")
    """Time in ns in which the device has run submissions."""


@dataclass(frozen=True)
class Stats(Described):
    """The server as a whole."""

    instance: str = fact(read=lambda look: look.engine.instance.hex())
    """Identity of the server process, in hexadecimal digits."""
    version: str = fact()
    """Version of the server."""
    started_at: str = fact(
        "start_time_seconds", told=lambda stats: datetime.fromisoformat(stats.started_at).timestamp()
    )
    """Start of the server, ISO 8601, UTC."""
    backend: BackendView = part(read="engine.device.info")
    """The device that runs programs."""
    is_ready: bool = gauge("ready", "engine.is_ready", join=any, default=False)
    """Whether the server can do what clients send."""
    is_draining: bool = gauge("draining", "engine.is_draining", join=any, default=False)
    """Whether the server shuts down."""
    trouble: str = gauge(
        "trouble", "engine.trouble", join=_troubles, told=lambda stats: bool(stats.trouble), default=""
    )
    """Why the machine cannot compile programs now, such as a full disk. Empty if it can."""
    is_held: bool = gauge("held", "engine.is_held", join=any, default=False)
    """Whether an operator holds the device, so that it takes no new submissions."""
    sessions: int = gauge(read=lambda look: len(look.sessions))
    """Number of sessions, detached ones included."""
    sessions_without_credit: int = gauge("sessions_without_credit", sum_of("has_used_up_credit"))
    """Number of sessions that have used up their credit now."""
    session_states: SessionStates = part(SessionStates(), "states")
    """Sessions by state."""
    in_flight: InFlight = part(InFlight(), itself)
    """Work of all sessions that the device has not completed."""
    live_handles: int = gauge("live_handles", lambda look: sum([view.live_handles for view in look.views]))
    """Number of arrays of all sessions."""
    programs: int = gauge(read=lambda look: len(look.engine.programs.entries))
    """Number of known programs."""
    program_tiers: Mapping[str, int] = gauge("programs", labels={"tier": ("0", "1", "2")}, default={})
    """Known programs, by tier."""
    program_bytes: int = gauge("program_bytes", "engine.programs.size_bytes")
    """Bytes of host memory of all known programs."""
    queue: Queue = part(Queue(), itself)
    """Rows that wait."""
    kernel_waits: KernelWaits = part(KernelWaits())
    """The kernels of single ops that rows wait for."""
    session_bytes: SessionBytes = part(SessionBytes(), itself)
    """Bytes of all sessions."""
    host_memory: HostMemory = part(HostMemory())
    """Memory of the server process by what it is for, in bytes."""
    totals: Totals = part(Totals(), itself)
    """The server's work."""
    phases: Phases = part(Phases(), itself)
    """Time by phase."""
    launching: Launching = part(Launching(), lambda look: look.engine.device.launch_counts())
    """How the device has launched many kernels or iterations by one call."""
    memory: Memory = part(Memory(), "engine.memory")
    """Memory of the device."""
    gpu: Gpu = part(Gpu(), "machine.gpu")
    """The GPU, as NVML tells it."""
    disk_free_bytes: int | None = gauge(
        "disk_free_bytes", "machine.disk_free_bytes", join=least, told=_or_nan("disk_free_bytes"), default=None
    )
    """Free bytes of the disk on which compiled kernels are kept. Null if they are not kept on a disk."""
    certificate_expires_at_s: float | None = gauge(
        "certificate_expiry_timestamp_seconds",
        "machine.certificate_expires_at_s",
        join=least,
        told=_or_nan("certificate_expires_at_s"),
        default=None,
    )
    """Unix time in s at which the server's certificate expires. Null without one."""
    process: Process = part(Process(), "machine.process")
    """The server process."""
    rows_per_launch: Histogram = counter(
        "rows_per_submission",
        lambda look: histogram(look.counters.rows_per_submission, look.counters.rows),
        labels={"le": _ROWS_ENDS},
        default=Histogram(),
    )
    """Rows of submissions."""
    ops_per_launch: Histogram = counter(
        "ops_per_launch",
        lambda look: histogram(look.counters.ops_per_launch, look.counters.ops),
        labels={"le": _OPS_ENDS},
        default=Histogram(),
    )
    """Ops of kernel launches."""
    devices_unready: int = gauge("devices_unready", lambda look: int(not look.engine.is_ready))
    """Number of devices that take no sessions."""
    devices: tuple[DeviceView, ...] = gauge(label="number", default=())
    """The devices of a server with an engine process for each. Empty if the server runs on one by itself."""


@dataclass(frozen=True)
class SessionView(Described):
    """One session."""

    session: str = fact(read="session.shown_id")
    """Shown id of the session: 12 hexadecimal digits."""
    name: str = fact(read="session.name")
    """What its user calls it, or empty."""
    labels: Mapping[str, str] = fact(read="session.labels", default={})
    """What else its user tells of it."""
    tenant: str = fact(read="session.tenant")
    """Name of its tenant."""
    peer: str = fact(read="session.peer")
    """Network address of the client."""
    client: str = fact(read="session.client")
    """What the client says of itself."""
    protocol_version: int = fact(read=lambda _look: PROTOCOL_VERSION, default=0)
    """Version of the protocol."""
    epoch: int = counter(read="session.epoch")
    """Number of connections that have carried the session."""
    state: str = gauge(read="session.state.value", default="")
    """open, or detached: its connection broke and it waits to be resumed."""
    ops: int = counter(read="session.ops_total")
    """Number of ops that came."""
    segments: int = counter(read="session.completed.segments")
    """Number of segments that the device has completed."""
    received_bytes: int = counter(read="session.bytes_in")
    """Bytes from the client."""
    sent_bytes: int = counter(read="session.bytes_out")
    """Bytes to the client."""
    in_flight_ops: int = gauge(read="session.in_flight.ops")
    """Credit in ops that segments in flight have taken. A loop takes as many ops as it runs, and at most all credit."""
    in_flight_bytes: int = gauge(read="session.in_flight.bytes")
    """Bytes of results and small uploads in flight."""
    in_flight_segments: int = gauge(read="session.in_flight.segments")
    """Number of segments in flight."""
    queued_rows: int = gauge(read=lambda look: len(look.session.queue))
    """Number of rows that could run."""
    next_program: str = gauge(read=_next_program, default="")
    """Digest of the program of the first of them, or empty."""
    live_handles: int = gauge(read=lambda look: look.session.values_held + look.session.failed.count)
    """Number of arrays, with those that loops keep while they run."""
    live_bytes: int = gauge(read="session.live_bytes")
    """Bytes of these arrays, failed ones included, as `limits.live_bytes` counts them."""
    unread_bytes: int = gauge(read="session.answers.unread_bytes")
    """Bytes of results that the client has not taken."""
    host_bytes: int = gauge()
    """Estimated bytes of host memory that it holds: tables, failures, answers, uploads, and its programs."""
    device_ns: int = counter(read="session.device_ns")
    """Device time in ns that the session has used."""
    loop_ns: int = counter(read="session.loop_ns")
    """Time of the engine thread in ns that the session's frames have used."""
    idle_s: float = gauge(read=lambda look: max(look.now_ns - look.session.heard_at_ns, 0) / 1e9)
    """Time in s since the last frame came."""
    wait_reason: str = gauge(default="")
    """What it waits for now: `kernel of max`, `held`, `fair share` (others' turns), `upload of 64 MiB`, `credit`,
    `device` (its work runs), `its client's connection`, or `its client to take answers`. Empty: for its client.
    """
    waiting_ns: int = counter(read=lambda look: look.waiting_ns)
    """Time in ns in which fetches of its client were not answered, so that the client waited, or might have."""
    age_s: float = gauge(read=lambda look: max(look.now_ns - look.session.opened_at_ns, 0) / 1e9)
    """Time in s since the session was opened."""
    failures: tuple[str, ...] = gauge(default=())
    """Its last failures, at most 3, the newest first."""
    waits_for: tuple[str, ...] = gauge(default=())
    """Names of ops whose kernels its rows wait for, at most 10."""
    device: int = fact(default=0)
    """Number of the device that it is on. 0 if the server has one."""


@dataclass(frozen=True)
class ProgramView(Described):
    """One program."""

    digest: str = fact(read=lambda entry: entry.digest.hex())
    """Digest of the program, in hexadecimal digits."""
    is_fragment: bool = fact(default=False)
    """Whether it is a fragment: ops that a client recorded outside loops."""
    ops: int = fact(read="program.op_count", default=0)
    """Number of ops."""
    structure: str = fact(default="")
    """Digest of its ops and their operands without sizes. Programs with one structure differ in sizes or attributes."""
    inputs: tuple[str, ...] = fact(read="input_texts", default=())
    """Dtypes and shapes of its inputs, at most 8."""
    results: int = fact(read=lambda entry: len(entry.program.live), default=0)
    """Number of results that are kept."""
    tier: int = gauge(read=lambda entry: 2 if _launches(entry).graphs else entry.tier)
    """0 if the program runs op by op, 1 if it runs by a plan, 2 if captured graphs of this plan are kept."""
    state: str = fact(read="state.value")
    """State of its plan, such as unplanned, planning or loaded."""
    hits: int = counter(read="uses")
    """Number of segments that used it."""
    rows: int = counter()
    """Number of rows that the device has completed."""
    submissions: int = counter()
    """Number of submissions that had these rows."""
    row_ns: int = fact(default=0)
    """Estimated device time of a row in ns; 0 before one has run at this tier."""
    planning_ns: int = counter()
    """Time of planning in ns."""
    compiling_ns: int = counter()
    """Time of compiling in ns."""
    refusal: str = fact()
    """Why the program has no plan. Empty if it was not refused."""
    rows_per_launch: Histogram = counter(
        read=lambda entry: histogram(entry.rows_per_submission, entry.rows), default=Histogram()
    )
    """Rows of its submissions."""
    form: str = fact(read=_form, default="ops")
    """How it has run: `ops` one by one, the `launches` of its plan, `graphs` of these, or a `persistent` kernel for
    many iterations of a loop. `why_launched` of its plan says why a loop has no persistent kernel.
    """
    launching: Launching = part(Launching(), _launches)
    """How the device has launched its plan."""
    why_no_graph: str = fact(read=lambda entry: entry.loaded.why_no_graph if entry.loaded else "", default="")
    """Why its plan has no captured graph. Empty if it has one, or no plan."""
    why_not_persistent: str = fact(
        read=lambda entry: entry.loaded.why_not_persistent if entry.loaded else "", default=""
    )
    """Why its persistent kernel did not run the iterations that came last. Empty if it did, or if there is none."""


@dataclass(frozen=True)
class AlikeView(Described):
    """A program of the same ops as another."""

    digest: str
    """Digest of the program, in hexadecimal digits."""
    difference: str
    """What differs in it, so that it was planned for itself."""
    rows: int
    """Number of rows that the device has completed."""


@dataclass(frozen=True)
class ProgramDetail(Described):
    """A program and its plan."""

    program: ProgramView = part()
    """The program."""
    compiled: CompiledView | None = fact(default=None)
    """Its plan. Null as long as the program runs op by op."""
    alike: tuple[AlikeView, ...] = fact(default=())
    """Programs of the same ops for other sizes, which have plans of their own, at most 20: those of most rows."""


@dataclass(frozen=True)
class TenantAccount(Described):
    """What the sessions of a tenant have used, ended ones included."""

    loop_ns: int = counter("tenant_loop_seconds")
    """Time of the engine thread that frames have used, by tenant, in ns."""
    device_ns: int = counter("tenant_device_seconds")
    """Device time that rows have used, by tenant, in ns."""
    planner_ns: int = counter("tenant_planner_seconds")
    """Time of the planner for programs that a session was the first to ask for, by tenant, in ns."""
    sessions: int = counter("tenant_sessions")
    """Number of sessions that were opened, by tenant."""
    ops: int = counter("tenant_ops")
    """Number of ops that came, by tenant."""
    segments: int = counter("tenant_segments")
    """Number of segments that came, by tenant."""
    received_bytes: int = counter("tenant_received_bytes")
    """Bytes from clients, by tenant."""
    sent_bytes: int = counter("tenant_sent_bytes")
    """Bytes to clients, by tenant."""
    queue_ns: Histogram = _latency("queue")
    """Time in ns of segments from their coming to their order to the device."""
    launch_ns: Histogram = _latency("launch")
    """Time in ns of segments from their order to their end, without the device's time."""
    device_part_ns: Histogram = _latency("device")
    """Time in ns of the device for the submissions of segments."""
    answer_ns: Histogram = _latency("answer")
    """Time in ns of fetches from the order to bring the value to their answer."""
    wait_ns: Histogram = _latency("wait")
    """Time in ns of fetches from their coming to their answer."""


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


def histogram(counts: Mapping[int, int], sum_of_values: int) -> Histogram:
    """Returns a histogram of counts by the ends of their buckets."""
    return Histogram(tuple([Bucket(at_most, counts[at_most]) for at_most in sorted(counts)]), sum_of_values)
