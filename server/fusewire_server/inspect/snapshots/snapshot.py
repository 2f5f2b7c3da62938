"""Defines the snapshot of the engine's tables: plain, immutable data that any thread may read.

The loop thread replaces one reference by a new Snapshot. No other thread reads the engine's live tables. Counts and
times start when the server starts; those of a session start with the session, and those of a program start with its
first use. `_ns` (nanoseconds) and `_bytes` are the units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from fusewire_kernels.fusion.reasons import sentences_of
from fusewire_kernels.plan.plan import Plan
from fusewire_protos.programs.records import OpRecord
from fusewire_server.inspect.described import Described
from fusewire_server.sessions.tenant_times import TenantTimes

_SHOWN_ID_DIGITS = 12


@dataclass(frozen=True)
class BackendView(Described):
    """The device that runs programs."""

    name: str
    """Name of the backend: cpu, cuda or null."""
    device: str
    """Name of the device."""
    memory_bytes: int
    """Memory of the device in bytes."""
    detail: str
    """Why the device was chosen, and which features it lacks."""
    has_compiler: bool
    """Whether programs are compiled. If not, every program runs op by op."""


@dataclass(frozen=True)
class Bucket(Described):
    """The number of values that are at most `at_most` and greater than the previous bucket's `at_most`."""

    at_most: int
    """Greatest value of the bucket."""
    count: int
    """Number of values in the bucket."""


@dataclass(frozen=True)
class Histogram(Described):
    """Positive whole numbers, counted in buckets."""

    buckets: tuple[Bucket, ...] = ()
    """The buckets, ascending. Each ends at a power of two."""
    total: int = 0
    """Sum of all values."""


@dataclass(frozen=True)
class PhaseTotal(Described):
    """The number of times that a phase ran, and the total time of the phase."""

    count: int = 0
    """Number of times that the phase ran."""
    total_ns: int = 0
    """Total time of the phase in ns."""


@dataclass(frozen=True)
class Phases(Described):
    """Time by phase, in the order in which work passes through the phases."""

    decode: PhaseTotal = PhaseTotal()
    """Applying the entries of frames."""
    queue: PhaseTotal = PhaseTotal()
    """Waiting of rows, from their coming to their order."""
    plan: PhaseTotal = PhaseTotal()
    """Planning programs."""
    compile: PhaseTotal = PhaseTotal()
    """Compiling the kernels of plans."""
    device_thread: PhaseTotal = PhaseTotal()
    """All work of the device thread, transfers and loading included. `count` counts submissions."""
    device: PhaseTotal = PhaseTotal()
    """Running submissions on the device."""
    copy_out: PhaseTotal = PhaseTotal()
    """Bringing fetched values to the host."""


@dataclass(frozen=True)
class Compilation(Described):
    """The planner's work. A program that differs from a known one only in sizes gets a new plan but no new kernels."""

    plans: int = 0
    """Number of plans made."""
    plans_refused: int = 0
    """Number of programs that got no plan."""
    kernels_compiled: int = 0
    """Number of kernels compiled for a plan."""
    kernels_reused: int = 0
    """Number of kernels that were compiled before the plan."""


@dataclass(frozen=True)
class Coalescing(Described):
    """Submissions that no limit on rows, memory or time made smaller.

    `rows` is smaller than `ready_sessions` only if sessions were ready in another lane.
    """

    submissions: int = 0
    """Number of submissions that no limit made smaller."""
    rows: int = 0
    """Number of their rows."""
    ready_sessions: int = 0
    """Sum, over these submissions, of the sessions whose next row was of the same program and could run."""


@dataclass(frozen=True)
class SessionTotals(Described):
    """The sessions that have been opened, resumed and ended; those that have ended by reason.

    A reason is the name of a failure, or `goodbye` (the client has ended it), `grace_passed` (its connection broke and
    the client did not come back in time), `replaced` (it was detached, and a new session needed its place) or `server`.
    """

    opened: int = 0
    """Number of sessions opened."""
    resumed: int = 0
    """Number of connections that resumed a session."""
    ended: Mapping[str, int] = field(default_factory=dict)
    """Number of sessions ended, by reason."""


@dataclass(frozen=True)
class ProgramCache(Described):
    """Programs that came."""

    hits: int = 0
    """Number of programs that were known."""
    misses: int = 0
    """Number of programs that were not known."""
    evictions: int = 0
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

    ops: int = 0
    """Number of ops that the device has completed."""
    segments: int = 0
    """Number of segments that came."""
    rows: int = 0
    """Number of rows of completed submissions; a loop is a row of each of its slices."""
    launches: int = 0
    """Number of kernel launches."""
    tier0_launches: int = 0
    """Number of launches that ran one op."""
    submissions: int = 0
    """Number of submissions that the device has completed."""
    received_bytes: int = 0
    """Bytes of frames and uploads from clients."""
    sent_bytes: int = 0
    """Bytes of frames and downloads to clients."""
    coalescing: Coalescing = Coalescing()
    """How many sessions shared submissions."""
    sessions: SessionTotals = SessionTotals()
    """Sessions opened, resumed and ended."""
    credit_used_up: int = 0
    """Number of segments and uploads after which their session had no credit for another one like them."""
    program_cache: ProgramCache = ProgramCache()
    """Programs that came."""
    batches: Mapping[str, int] = field(default_factory=dict)
    """Number of batches of rows, by why they have no more rows."""
    refusals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Number of refused calls, by door and case."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Number of failures by the name of their case."""
    compilation: Compilation = Compilation()
    """The planner's work."""


@dataclass(frozen=True)
class Memory(Described):
    """The memory of the device."""

    live_bytes: int = 0
    """Bytes of the blocks of all values now. A block may be larger than its value."""
    peak_bytes: int = 0
    """Most bytes of all values at once."""
    pool_bytes: int = 0
    """Free bytes that the device's pool keeps for later allocations."""
    donations: int = 0
    """Number of results written over inputs."""
    donated_bytes: int = 0
    """Bytes of these results."""


@dataclass(frozen=True)
class Launching(Described):
    """How the device has launched many kernels or iterations by one call."""

    persistent_launches: int = 0
    """Number of launches that ran many iterations each."""
    graphs: int = 0
    """Number of captured graphs that are kept."""
    captured: int = 0
    """Number of graphs that were captured."""
    evicted: int = 0
    """Number of graphs dropped to make room."""


@dataclass(frozen=True)
class Queue(Described):
    """Rows that wait."""

    ready: int = 0
    """Number of rows that could run."""
    held_back: int = 0
    """Number of rows that wait for uploads, or for results of such rows."""
    oldest_s: float = 0.0
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

    kernels: int = 0
    """Number of kernels that rows wait for."""
    sessions: int = 0
    """Number of sessions that have such rows."""
    oldest_s: float = 0.0
    """Time in s of the longest wait."""
    oldest: tuple[KernelWaitView, ...] = ()
    """The longest waits, at most 100, the longest first."""


@dataclass(frozen=True)
class SessionBytes(Described):
    """Bytes of all sessions."""

    live: int = 0
    """Bytes of values, failed ones included, as `limits.live_bytes` counts them."""
    in_flight: int = 0
    """Bytes of results and inline uploads for which credit is taken."""
    unread: int = 0
    """Bytes of results on the host that clients have not taken."""
    uploading: int = 0
    """Bytes of host memory of uploads that are arriving or not yet written."""


@dataclass(frozen=True)
class HostMemory(Described):
    """The memory of the server process by what it is for, as far as that is known. Estimated from counts of items."""

    sessions: int = 0
    """Bytes of tables, rows, failures, answers and uploads of all sessions."""
    programs: int = 0
    """Bytes of all known programs."""
    values: int = 0
    """Bytes of values and of the free pool if the device's memory is that of the host, else 0."""
    unaccounted: int = 0
    """Resident bytes beyond these: the interpreter, its libraries, kernels, and what no owner is known of."""


@dataclass(frozen=True)
class Process(Described):
    """The server process."""

    resident_bytes: int | None = None
    """Resident memory in bytes. Null on a system without /proc."""
    open_files: int | None = None
    """Number of open files. Null on a system without /proc."""
    threads: int | None = None
    """Number of threads. Null on a system without /proc."""
    tasks: int | None = None
    """Number of tasks of the event loop."""


@dataclass(frozen=True)
class DeviceView(Described):
    """One of several devices, which each have an engine process."""

    number: int
    """Number of the device, by which `connect` may ask for it."""
    name: str
    """Name of the device. Empty before it has begun."""
    is_ready: bool
    """Whether the device takes sessions."""
    trouble: str
    """Why it takes none. Empty if it does."""
    sessions: int = 0
    """Number of its sessions, detached ones included."""
    memory_bytes: int = 0
    """Memory of the device in bytes."""
    live_bytes: int = 0
    """Bytes of the blocks of all values now."""
    pool_bytes: int = 0
    """Free bytes that the device's pool keeps for later allocations."""
    busy_ns: int = 0
    """Time in ns in which it has run submissions."""


@dataclass(frozen=True)
class Stats(Described):
    """The server as a whole."""

    instance: str
    """Identity of the server process, in hexadecimal digits."""
    version: str
    """Version of the server."""
    started_at: str
    """Start of the server, ISO 8601, UTC."""
    backend: BackendView
    """The device that runs programs."""
    is_ready: bool
    """Whether the server can do what clients send."""
    is_draining: bool = False
    """Whether the server shuts down."""
    trouble: str = ""
    """Why the machine cannot compile programs now, such as a full disk. Empty if it can."""
    is_held: bool = False
    """Whether an operator holds the device, so that it takes no new submissions."""
    sessions: int = 0
    """Number of sessions, detached ones included."""
    sessions_without_credit: int = 0
    """Number of sessions that have used up their credit now."""
    programs: int = 0
    """Number of known programs."""
    program_bytes: int = 0
    """Bytes of host memory of all known programs."""
    queue: Queue = Queue()
    """Rows that wait."""
    kernel_waits: KernelWaits = KernelWaits()
    """The kernels of single ops that rows wait for."""
    session_bytes: SessionBytes = SessionBytes()
    """Bytes of all sessions."""
    host_memory: HostMemory = HostMemory()
    """Memory of the server process by what it is for, in bytes."""
    totals: Totals = Totals()
    """The server's work."""
    phases: Phases = Phases()
    """Time by phase."""
    launching: Launching = Launching()
    """How the device has launched many kernels or iterations by one call."""
    memory: Memory = Memory()
    """Memory of the device."""
    process: Process = Process()
    """The server process."""
    rows_per_launch: Histogram = Histogram()
    """Rows of submissions."""
    ops_per_launch: Histogram = Histogram()
    """Ops of kernel launches."""
    devices: tuple[DeviceView, ...] = ()
    """The devices of a server with an engine process for each. Empty if the server runs on one by itself."""


@dataclass(frozen=True)
class SessionView(Described):
    """One session."""

    session: str
    """Shown id of the session: 12 hexadecimal digits."""
    tenant: str
    """Name of its tenant."""
    peer: str
    """Network address of the client."""
    client: str
    """What the client says of itself."""
    protocol_version: int
    """Version of the protocol."""
    epoch: int
    """Number of connections that have carried the session."""
    state: str
    """open, or detached: its connection broke and it waits to be resumed."""
    ops: int
    """Number of ops that came."""
    segments: int
    """Number of segments that the device has completed."""
    received_bytes: int
    """Bytes from the client."""
    sent_bytes: int
    """Bytes to the client."""
    in_flight_ops: int
    """Credit in ops that segments in flight have taken. A loop takes as many ops as it runs, and at most all credit."""
    in_flight_bytes: int
    """Bytes of results and small uploads in flight."""
    in_flight_segments: int
    """Number of segments in flight."""
    live_handles: int
    """Number of arrays, with those that loops keep while they run."""
    live_bytes: int
    """Bytes of these arrays, failed ones included, as `limits.live_bytes` counts them."""
    unread_bytes: int
    """Bytes of results that the client has not taken."""
    host_bytes: int
    """Estimated bytes of host memory that it holds: tables, failures, answers, uploads, and its programs."""
    device_ns: int
    """Device time in ns that the session has used."""
    loop_ns: int
    """Time of the loop thread in ns that the session's frames have used."""
    idle_s: float
    """Time in s since the last frame came."""
    waits_for: tuple[str, ...] = ()
    """Names of ops whose kernels its rows wait for, at most 10."""
    device: int = 0
    """Number of the device that it is on. 0 if the server has one."""


@dataclass(frozen=True)
class GroupView(Described):
    """Ops of a program that are fused into one kernel."""

    kernel: str
    """Name of the kernel."""
    sizes: tuple[int, ...]
    """Sizes that the launch passes to the kernel."""
    instances: int
    """Number of equal groups in the launch."""
    values: tuple[tuple[int, ...], ...] = ()
    """For each of these groups, the op of each value that the kernel's text numbers (v0, v1 …); -1 for what is read."""


@dataclass(frozen=True, slots=True)
class LineView(Described):
    """A line of a kernel's text that computes a value."""

    line: int
    """Number of the line, from 1 on."""
    value: int
    """Number of the value. `values` of a launch has its op."""


@dataclass(frozen=True)
class SourceView(Described):
    """The generated text of a kernel."""

    kernel: str
    """Name of the kernel."""
    text: str
    """The generated text."""
    lines: tuple[LineView, ...] = ()
    """The lines that compute values, or read them."""


@dataclass(frozen=True, slots=True)
class OpView(Described):
    """What an op of a program became."""

    name: str
    """Name of the op."""
    form: str
    """`kernels` if groups compute it. `view`: it shows elements of another value where they are. `assembly`: a buffer
    without elements, or one whose parts are read where they are. `constant`: the plan holds it. `dead`: no result that
    is wanted depends on it.
    """
    groups: tuple[int, ...]
    """The groups that compute it. Groups are numbered through all launches, in order."""


@dataclass(frozen=True, slots=True)
class UnfusedView(Described):
    """Two ops that are not fused: one reads from memory what the other computes."""

    consumer: int
    """Index of the op that reads."""
    producer: int
    """Index of the op that is read. It is the same op if that is computed in several steps."""
    reason: str
    """Code of the reason; `reasons` has its sentence."""


@dataclass(frozen=True, slots=True)
class SeparateView(Described):
    """Two launches that read one input, of which the later does not wait for the earlier."""

    launch: int
    """Index of the later launch."""
    other: int
    """Index of the earlier launch."""
    input: int
    """Number of the input."""
    reason: str
    """Code of the reason why they are not one launch; `reasons` has its sentence."""


@dataclass(frozen=True)
class Omitted(Described):
    """Counts what is left out of an answer, because the answer would be too long."""

    groups: int = 0
    """Number of launches left out."""
    ops: int = 0
    """Number of ops left out."""
    unfused: int = 0
    """Number of pairs that are not fused left out."""
    sources: int = 0
    """Number of kernels left out."""


@dataclass(frozen=True)
class CompiledView(Described):
    """A plan as people see it: its launches in order, what became of each op, why ops were not fused, its kernels."""

    groups: tuple[GroupView, ...]
    """The launches, in order."""
    ops: tuple[OpView, ...]
    """The ops of the program, in order."""
    unfused: tuple[UnfusedView, ...]
    """The ops that are not fused though one reads the other. Each pair has one reason."""
    separate: tuple[SeparateView, ...]
    """The launches that are not one though they read one input."""
    reasons: Mapping[str, str]
    """The sentences of the reasons that occur here, by code."""
    updated: tuple[int, ...]
    """Numbers of the inputs that the iterations of a loop change in place."""
    persistent: tuple[str, ...]
    """The form of each op if one launch runs many iterations of a loop. Empty if there is no such kernel."""
    why_launched: str
    """Why a loop has no such kernel, so that each iteration is launched. Empty if it has, or if it is no loop."""
    sources: tuple[SourceView, ...]
    """The kernels."""
    arena_bytes: int
    """Memory in bytes that a row needs for intermediate values."""
    omitted: Omitted = Omitted()
    """What is left out here."""


@dataclass(frozen=True)
class ProgramView(Described):
    """One program."""

    digest: str
    """Digest of the program, in hexadecimal digits."""
    is_fragment: bool
    """Whether it is a fragment: ops that a client recorded outside loops."""
    ops: int
    """Number of ops."""
    tier: int
    """0 if the program runs op by op, 1 if it runs by a plan, 2 if captured graphs of this plan are kept."""
    state: str
    """State of its plan, such as unplanned, planning or loaded."""
    hits: int
    """Number of segments that used it."""
    rows: int
    """Number of rows that the device has completed."""
    submissions: int
    """Number of submissions that had these rows."""
    row_ns: int
    """Estimated device time of a row in ns; 0 before one has run at this tier."""
    planning_ns: int
    """Time of planning in ns."""
    compiling_ns: int
    """Time of compiling in ns."""
    refusal: str
    """Why the program has no plan. Empty if it was not refused."""
    rows_per_launch: Histogram = Histogram()
    """Rows of its submissions."""
    form: str = "ops"
    """How it has run: `ops` one by one, the `launches` of its plan, `graphs` of these, or a `persistent` kernel for
    many iterations of a loop. The explanation of its plan says why a loop has no persistent kernel.
    """
    launching: Launching = Launching()
    """How the device has launched its plan."""
    why_no_graph: str = ""
    """Why its plan has no captured graph. Empty if it has one, or no plan."""
    why_not_persistent: str = ""
    """Why its persistent kernel did not run the iterations that came last. Empty if it did, or if there is none."""


@dataclass(frozen=True)
class ProgramDetail(Described):
    """A program and its plan."""

    program: ProgramView
    """The program."""
    compiled: CompiledView | None = None
    """Its plan. Null as long as the program runs op by op."""


@dataclass(frozen=True)
class Snapshot:
    """All data that inspection can show, as they were at one moment."""

    stats: Stats
    sessions: tuple[SessionView, ...] = ()
    programs: tuple[ProgramDetail, ...] = ()
    # By tenant: ended sessions count in its times; a program of several sessions counts once in its host memory.
    tenant_times: Mapping[str, TenantTimes] = field(default_factory=dict)
    tenant_host_bytes: Mapping[str, int] = field(default_factory=dict)
    tenant_device_bytes: Mapping[str, int] = field(default_factory=dict)
    taken_at_ns: int = 0  # on the monotonic clock


def shown_id(session_id: bytes) -> str:
    """Returns the part of a session's id that people see: enough to tell sessions apart, too little to resume one."""
    return session_id.hex()[:_SHOWN_ID_DIGITS]


def compiled_view(plan: Plan, names: Sequence[str]) -> CompiledView:
    """Returns a plan as people see it. `names` are those of the program's ops.

    Called once for each loaded plan, because snapshots share the result.
    """
    records = plan.records
    of_records: dict[tuple[str, OpRecord], OpView] = {}
    pairs = [*zip(names, records.ops, strict=True)]
    values = iter(records.values)
    return CompiledView(
        groups=tuple(
            GroupView(
                plan.kernels[launch.kernel].key,
                launch.sizes,
                len(launch.instances),
                tuple(islice(values, len(launch.instances))),
            )
            for launch in plan.launches
        ),
        ops=tuple([of_records.setdefault(pair, OpView(pair[0], *pair[1])) for pair in pairs]),
        unfused=tuple([UnfusedView(*each) for each in records.unfused]),
        separate=tuple([SeparateView(*each) for each in records.separate]),
        reasons=sentences_of(records),
        updated=records.updated,
        persistent=tuple([each.form for each in records.persistent]),
        why_launched=records.why_launched,
        sources=tuple(SourceView(kernel.key, kernel.text) for kernel in plan.kernels),
        arena_bytes=plan.arena_bytes,
    )
