"""Defines the snapshot of the engine's tables: plain, immutable data that any thread may read.

The loop thread replaces one reference by a new Snapshot. No other thread reads the engine's live tables. Counts and
times start when the server starts; those of a session start with the session, and those of a program start with its
first use. `_ns` (nanoseconds) and `_bytes` are the units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fusewire_kernels.plan.plan import Plan

_SHOWN_ID_DIGITS = 12


@dataclass(frozen=True)
class BackendView:
    """The device that runs programs. `detail` says why the device was chosen and which features it lacks.

    On a device without a compiler every program runs op by op.
    """

    name: str
    device: str
    memory_bytes: int
    detail: str
    has_compiler: bool


@dataclass(frozen=True)
class Bucket:
    """The number of values that are at most `at_most` and greater than the previous bucket's `at_most`."""

    at_most: int
    count: int


@dataclass(frozen=True)
class Histogram:
    """Positive whole numbers, counted in buckets. `total` is the sum of these numbers.

    Each bucket ends at a power of two; the buckets are in ascending order.
    """

    buckets: tuple[Bucket, ...] = ()
    total: int = 0


@dataclass(frozen=True)
class PhaseTotal:
    """The number of times that a phase ran, and the total time of the phase."""

    count: int = 0
    total_ns: int = 0


@dataclass(frozen=True)
class Phases:
    """Time by phase, in the order in which work passes through the phases.

    `device_thread` is all work of that thread, transfers and loading included; its `count` counts submissions.
    """

    decode: PhaseTotal = PhaseTotal()
    queue: PhaseTotal = PhaseTotal()
    plan: PhaseTotal = PhaseTotal()
    compile: PhaseTotal = PhaseTotal()
    device_thread: PhaseTotal = PhaseTotal()
    device: PhaseTotal = PhaseTotal()
    copy_out: PhaseTotal = PhaseTotal()


@dataclass(frozen=True)
class Compilation:
    """The planner's work. A program that differs from a known one only in sizes gets a new plan but no new kernels."""

    plans: int = 0
    plans_refused: int = 0
    kernels_compiled: int = 0
    kernels_reused: int = 0


@dataclass(frozen=True)
class Coalescing:
    """Submissions that no limit on rows, memory or time made smaller: their number and their rows.

    `ready_sessions` adds up, for each of these submissions, the sessions whose next row was of the same program and
    could run. `rows` is smaller only if sessions were ready in another lane.
    """

    submissions: int = 0
    rows: int = 0
    ready_sessions: int = 0


@dataclass(frozen=True)
class SessionTotals:
    """The sessions that have been opened, resumed and ended; those that have ended by reason.

    A reason is the name of a failure, or `goodbye` (the client has ended it), `grace_passed` (its connection broke and
    the client did not come back in time), `replaced` (it was detached, and a new session needed its place) or `server`.
    """

    opened: int = 0
    resumed: int = 0
    ended: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ProgramCache:
    """Programs that came: `hits` were known. `evictions` counts programs that were dropped to make room."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0


@dataclass(frozen=True)
class Totals:
    """The server's work. `failures` counts failures by the name of their case.

    `segments` counts all segments that came. `rows` counts the segments that the device has completed, failed segments
    included. `tier0_launches` are those of `launches` that ran one op.

    `credit_used_up` counts segments and uploads after which their session had no credit for another one like them. The
    client then waits until the device completes some of its work; only the client knows whether it had more to send.

    `batches` counts batches of rows by why they have no more rows: `alone` (no other session had a row of the program),
    `everybody` (all ready sessions joined), `lane` (others were ready in another lane), or the limit `rows`, `memory`
    or `time`. `refusals` counts refused calls by door and case. The doors are `token` (any call without a valid token),
    `session` (at the hello), `transfer` (uploads and downloads) and `inspection` (HTTP requests).
    """

    ops: int = 0
    segments: int = 0
    rows: int = 0
    launches: int = 0
    tier0_launches: int = 0
    submissions: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    coalescing: Coalescing = Coalescing()
    sessions: SessionTotals = SessionTotals()
    credit_used_up: int = 0
    program_cache: ProgramCache = ProgramCache()
    batches: Mapping[str, int] = field(default_factory=dict)
    refusals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    compilation: Compilation = Compilation()


@dataclass(frozen=True)
class Memory:
    """Device memory: bytes of values now and at their peak, bytes in the pool, and the blocks reused by donation."""

    live_bytes: int = 0
    peak_bytes: int = 0
    pool_bytes: int = 0
    donations: int = 0
    donated_bytes: int = 0


@dataclass(frozen=True)
class Queue:
    """Rows that wait. `ready` rows could run; `held_back` rows wait for uploads, or for results of such rows.

    `oldest_s` is the age of the oldest row that is the next of its session.
    """

    ready: int = 0
    held_back: int = 0
    oldest_s: float = 0.0


@dataclass(frozen=True)
class SessionBytes:
    """Bytes of all sessions.

    `live` are their values. `in_flight` are results and inline uploads for which credit is taken. `unread` are results
    on the host that clients have not taken. `uploading` is host memory of uploads that are arriving or not yet written.
    """

    live: int = 0
    in_flight: int = 0
    unread: int = 0
    uploading: int = 0


@dataclass(frozen=True)
class Process:
    """The server process. The fields are None on a system without /proc; `tasks` counts those of the loop thread."""

    resident_bytes: int | None = None
    open_files: int | None = None
    threads: int | None = None
    tasks: int | None = None


@dataclass(frozen=True)
class Stats:
    """The server as a whole. While `is_held` is true, the device takes no new submissions."""

    instance: str
    version: str
    started_at: str  # ISO 8601, UTC
    backend: BackendView
    is_ready: bool
    is_draining: bool = False
    trouble: str = ""  # why the machine cannot compile programs now, such as a full disk
    is_held: bool = False
    sessions: int = 0
    sessions_without_credit: int = 0  # they have used up their credit now
    programs: int = 0
    program_bytes: int = 0  # host memory of all known programs
    queue: Queue = Queue()
    session_bytes: SessionBytes = SessionBytes()
    totals: Totals = Totals()
    phases: Phases = Phases()
    memory: Memory = Memory()
    process: Process = Process()
    rows_per_launch: Histogram = Histogram()
    ops_per_launch: Histogram = Histogram()


@dataclass(frozen=True)
class SessionView:
    """One session. `session` is the shown part of its id; `unread_bytes` are results that the client has not taken."""

    session: str
    tenant: str
    peer: str
    client: str
    protocol_version: int
    epoch: int
    state: str
    ops: int
    segments: int
    received_bytes: int
    sent_bytes: int
    in_flight_ops: int
    in_flight_bytes: int
    in_flight_segments: int
    live_handles: int
    live_bytes: int
    unread_bytes: int
    device_ns: int
    idle_s: float


@dataclass(frozen=True)
class GroupView:
    """Ops of a program that are fused into one kernel. `instances` is the number of equal groups in one launch."""

    kernel: str
    sizes: tuple[int, ...]
    instances: int


@dataclass(frozen=True)
class SourceView:
    """The generated text of a kernel."""

    kernel: str
    text: str


@dataclass(frozen=True)
class CompiledView:
    """A plan as people see it: its launches in order, which ops were fused, why other ops were not, and its kernels."""

    groups: tuple[GroupView, ...]
    explanation: tuple[str, ...]
    sources: tuple[SourceView, ...]
    arena_bytes: int


@dataclass(frozen=True)
class ProgramView:
    """One program. `row_ns` is the estimate of a row's device time; `refusal` says why there is no plan."""

    digest: str
    is_fragment: bool
    ops: int
    tier: int
    state: str
    hits: int
    rows: int
    submissions: int
    row_ns: int
    planning_ns: int
    compiling_ns: int
    refusal: str
    rows_per_launch: Histogram = Histogram()


@dataclass(frozen=True)
class ProgramDetail:
    """A program and its plan. `compiled` is None as long as the program runs op by op."""

    program: ProgramView
    compiled: CompiledView | None = None


@dataclass(frozen=True)
class Snapshot:
    """All data that inspection can show, as they were at one moment."""

    stats: Stats
    sessions: tuple[SessionView, ...] = ()
    programs: tuple[ProgramDetail, ...] = ()
    taken_at_ns: int = 0  # on the monotonic clock


def shown_id(session_id: bytes) -> str:
    """Returns the part of a session's id that people see: enough to tell sessions apart, too little to resume one."""
    return session_id.hex()[:_SHOWN_ID_DIGITS]


def compiled_view(plan: Plan) -> CompiledView:
    """Returns a plan as people see it. Called once for each loaded plan, because snapshots share the result."""
    return CompiledView(
        groups=tuple(
            GroupView(plan.kernels[launch.kernel].key, launch.sizes, len(launch.instances)) for launch in plan.launches
        ),
        explanation=plan.explanation,
        sources=tuple(SourceView(kernel.key, kernel.text) for kernel in plan.kernels),
        arena_bytes=plan.arena_bytes,
    )
