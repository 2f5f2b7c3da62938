"""The answers of the routes that are not in a snapshot: each field with its meaning and unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from fusewire_server.figures import Described, fact
from fusewire_server.inspect.snapshots.details import BlockView
from fusewire_server.inspect.snapshots.program_view import ProgramView
from fusewire_server.inspect.snapshots.session_view import SessionView
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.stats import DeviceView, KernelWaits
from fusewire_server.inspect.snapshots.tenant_account import TenantAccount
from fusewire_server.programs.recent import EndedSession, RecentFailure, SlowSegment

MOST_LISTED = 1000  # programs and tenants of the queue


Next = Annotated[
    str | None, Field(description="the value of `after` that gives the next page; null: this is the last page")
]


class Sessions(BaseModel):
    """Sessions, detached ones included, in the order in which they were opened."""

    sessions: tuple[SessionView, ...] = Field(description="the sessions of the page")
    next: Next = None


class Programs(BaseModel):
    """Programs that the server knows."""

    programs: tuple[ProgramView, ...] = Field(description="the programs of the page")
    next: Next = None


@dataclass(frozen=True)
class TenantView(Described):
    """The sessions of one tenant together that have not ended, and its account, which ended ones stay in."""

    tenant: str
    """Name of the tenant."""
    sessions: int
    """Sessions that have not ended."""
    in_flight_ops: int
    """Ops that the device has not completed."""
    live_handles: int
    """Arrays."""
    live_bytes: int
    """Bytes of these arrays."""
    unread_bytes: int
    """Bytes of results that clients have not taken."""
    device_bytes: int
    """Bytes of the device's blocks that hold values."""
    host_bytes: int
    """Estimated bytes of host memory, as `limits.tenant_host_bytes` counts them."""
    device_ns: int
    """Device time used, in nanoseconds."""
    loop_ns: int
    """Time of the engine thread that frames have used, in nanoseconds."""
    account: TenantAccount
    """What all sessions of the tenant have used, ended ones included."""


class Tenants(BaseModel):
    """Tenants that have had sessions, by name."""

    tenants: tuple[TenantView, ...] = Field(description="the tenants of the page")
    next: Next = None


@dataclass(frozen=True)
class ArrayView(Described):
    """One array of a session, without its value."""

    handle: int
    """Number of the array in its session."""
    dtype: str
    """Type of the elements."""
    shape: tuple[int, ...]
    """Elements along each axis."""
    bytes: int
    """Size of the array."""
    state: str
    """Awaited, issued, ready or failed."""
    age_s: float
    """Seconds since the array was declared."""
    base: int | None
    """Handle of op 0 of the segment that computes it; null for an upload."""
    op: int | None
    """Index of the op that computes it in this segment; null for an upload."""


class Arrays(BaseModel):
    """Arrays of a session, by handle."""

    arrays: tuple[ArrayView, ...] = Field(description="the arrays of the page")
    next: Next = None


@dataclass(frozen=True)
class QueuedTenant(Described):
    """The rows of a tenant that wait."""

    tenant: str
    """Name of the tenant."""
    rows: int
    """Rows that could run."""


@dataclass(frozen=True)
class QueuedProgram(Described):
    """A program, and how many sessions run it next."""

    digest: str
    """Digest of the program."""
    sessions: int
    """Sessions that run it next."""


def _free_bytes(snapshot: Snapshot) -> int:
    return max(snapshot.stats.backend.memory_bytes - snapshot.stats.memory.live_bytes, 0)


def _waiting(record: Callable[[str, int], Any], counts: Counter[str]) -> tuple[Any, ...]:
    return tuple([record(*each) for each in counts.most_common(MOST_LISTED)])


def _tenants(snapshot: Snapshot) -> tuple[QueuedTenant, ...]:
    rows: Counter[str] = Counter()
    for session in snapshot.sessions:
        rows[session.tenant] += session.queued_rows
    return _waiting(QueuedTenant, +rows)


def _programs(snapshot: Snapshot) -> tuple[QueuedProgram, ...]:
    return _waiting(QueuedProgram, Counter([each.next_program for each in snapshot.sessions if each.queued_rows]))


@dataclass(frozen=True)
class QueueView(Described):
    """The segments (rows) that wait for the device, and the submissions that it works on."""

    rows: int = fact(read="stats.queue.ready", default=MISSING)
    """Rows that could run."""
    held_back_rows: int = fact(read="stats.queue.held_back", default=MISSING)
    """Rows that wait for an upload."""
    oldest_row_s: float = fact(read="stats.queue.oldest_s", default=MISSING)
    """Seconds that the oldest row at the head of a queue has waited."""
    submissions: int = fact(read="stats.in_flight.submissions", default=MISSING)
    """Submissions that the device has not completed."""
    is_held: bool = fact(read="stats.is_held", default=MISSING)
    """Whether an operator holds the device."""
    tenants: tuple[QueuedTenant, ...] = fact(read=_tenants, default=MISSING)
    """At most 1,000, those with most rows first."""
    programs: tuple[QueuedProgram, ...] = fact(read=_programs, default=MISSING)
    """At most 1,000, those of most sessions first."""
    kernel_waits: KernelWaits = fact(read="stats.kernel_waits", default=MISSING)
    """Kernels of single ops that rows on the device wait for."""


@dataclass(frozen=True)
class PoolView(Described):
    """The memory of the device."""

    device_memory_bytes: int = fact(read="stats.backend.memory_bytes", default=MISSING)
    """Most bytes that all values may have."""
    live_bytes: int = fact(read="stats.memory.live_bytes", default=MISSING)
    """Bytes of values now."""
    peak_bytes: int = fact(read="stats.memory.peak_bytes", default=MISSING)
    """Most bytes of values since the start."""
    pool_bytes: int = fact(read="stats.memory.pool_bytes", default=MISSING)
    """Free bytes that the pool keeps for later allocations."""
    free_bytes: int = fact(read=_free_bytes, default=MISSING)
    """Bytes of the device's memory that no value takes, those of the pool included."""
    donations: int = fact(read="stats.memory.donations", default=MISSING)
    """Results that were written over inputs."""
    donated_bytes: int = fact(read="stats.memory.donated_bytes", default=MISSING)
    """Bytes of these results."""
    blocks: tuple[BlockView, ...] = fact(read=lambda _: (), default=MISSING)
    """By size. Of a GPU, free blocks above 1 MiB are kept by CuPy, which tells only their bytes."""


class SlowLogView(BaseModel):
    """The newest slow segments, at most 128, the newest first."""

    threshold_s: float = Field(description="least seconds of a segment in the log")
    entries: tuple[SlowSegment, ...] = Field(description="the segments, the newest first")


class Failures(BaseModel):
    """The newest failures of all sessions, at most 128, the newest first."""

    failures: tuple[RecentFailure, ...] = Field(description="the failures, the newest first")


class EndedSessions(BaseModel):
    """The sessions that have ended last, at most 128, the newest first."""

    sessions: tuple[EndedSession, ...] = Field(description="the ended sessions, the newest first")


class SettingView(BaseModel):
    """The value of a setting, and where it was set."""

    value: str | int | float | bool | None = Field(description="in the unit that ends the setting's name; null: unset")
    origin: str = Field(
        description="default, or the file, environment variable or flag that gave it",
        examples=["default", "flag --grpc"],
    )


class Settings(BaseModel):
    """All settings of the server by `section.key`. They hold no secrets, only the names of files that do."""

    settings: Mapping[str, SettingView] = Field(description="the settings by `section.key`")


@dataclass(frozen=True)
class Readiness(Described):
    """Tells whether the server takes sessions, and why or why not."""

    is_ready: bool
    """Whether the server can do what clients send."""
    is_draining: bool
    """Whether the server is shutting down."""
    is_held: bool
    """Whether an operator holds the device."""
    trouble: str
    """Why the machine cannot compile programs now, such as a full disk; or empty."""
    kernel_waits: KernelWaits
    """Kernels of single ops that rows wait for, and why these do not come."""
    backend: str = fact(read="backend.name")
    """Name of the backend."""
    device: str = fact(read="backend.device")
    """Name of the device."""
    device_memory_bytes: int = fact(read="backend.memory_bytes", default=0)
    """Memory of the device."""
    live_bytes: int = fact(read="memory.live_bytes", default=0)
    """Bytes of all values now."""
    pool_bytes: int = fact(read="memory.pool_bytes", default=0)
    """Free bytes that the pool keeps for later allocations."""
    devices: tuple[DeviceView, ...] = fact(default=())
    """The devices, if there is an engine process for each."""


class Gate(BaseModel):
    """Tells whether the device is held after the request."""

    is_held: bool = Field(description="whether the device takes no new submissions")


class Drain(BaseModel):
    """Tells that the server has begun to end."""

    is_draining: bool = Field(description="true; the server ends after limits.drain_s at the latest")


class Ending(BaseModel):
    """Tells that a session is being ended."""

    session: str = Field(description="shown id of the session")
    is_ending: bool = Field(description="true; the session has ended once `/v1/sessions` no longer lists it")


class LogLevel(BaseModel):
    """The level of the log: records below it are not written."""

    level: str = Field(
        description="the least level that is written", pattern="^(debug|info|warning|error)$", examples=["info"]
    )
