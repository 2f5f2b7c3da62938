"""The server as a whole: its device, its memory, what waits and what it has done. Plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import nan
from operator import attrgetter
from typing import Any

from fusewire_server.figures import Described, counter, fact, gauge, itself, least, part, together
from fusewire_server.host.gpu_health import Gpu
from fusewire_server.host.process_usage import Process
from fusewire_server.inspect.snapshots.histogram import Histogram, histogram
from fusewire_server.inspect.snapshots.program_view import Launching
from fusewire_server.inspect.snapshots.totals import Phases, Totals

_MOST_LISTED = 100  # waits for kernels
_ROWS_ENDS = tuple([2**power for power in range(8)])  # of buckets
_OPS_ENDS = tuple([2**power for power in range(14)])


def sum_of(name: str, count: Callable[[Any], int] = int) -> Callable[[Any], int]:
    """Reads the sum of a figure of all sessions."""
    value = attrgetter(name)
    return lambda look: sum([count(value(session)) for session in look.sessions])


def _or_nan(name: str) -> Callable[[Any], float]:
    """Tells a metric of what may be unknown. An alert on NaN stays quiet."""
    return lambda record: nan if getattr(record, name) is None else getattr(record, name)


def _device_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} × {names[0]}"


def _longest(lists: Sequence[Sequence[KernelWaitView]]) -> tuple[KernelWaitView, ...]:
    return tuple(sorted(together(lists), key=attrgetter("waited_s"), reverse=True)[:_MOST_LISTED])


def _troubles(texts: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))


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
        "start_time_seconds", metric_value=lambda stats: datetime.fromisoformat(stats.started_at).timestamp()
    )
    """Start of the server, ISO 8601, UTC."""
    backend: BackendView = part(read="engine.device.info")
    """The device that runs programs."""
    is_ready: bool = gauge("ready", "engine.is_ready", join=any, default=False)
    """Whether the server can do what clients send."""
    is_draining: bool = gauge("draining", "engine.is_draining", join=any, default=False)
    """Whether the server shuts down."""
    trouble: str = gauge(
        "trouble", "engine.trouble", join=_troubles, metric_value=lambda stats: bool(stats.trouble), default=""
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
        "disk_free_bytes", "machine.disk_free_bytes", join=least, metric_value=_or_nan("disk_free_bytes"), default=None
    )
    """Free bytes of the disk on which compiled kernels are kept. Null if they are not kept on a disk."""
    certificate_expires_at_s: float | None = gauge(
        "certificate_expiry_timestamp_seconds",
        "machine.certificate_expires_at_s",
        join=least,
        metric_value=_or_nan("certificate_expires_at_s"),
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
