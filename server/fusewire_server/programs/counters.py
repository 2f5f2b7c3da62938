"""Keeps the counters of the server: totals, the time of each phase, and histograms. The engine thread owns them."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from fusewire_kernels.devices.base import LoadedPlan
from fusewire_protos.errors import CASES, Consequence
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramEntry, bucket
from fusewire_server.programs.recent import MOST_RECENT, EndedSession, RecentFailure, SlowRow, when

# Why sessions end. Other reasons are the names of failures that end a session.
GOODBYE = "goodbye"  # the client has ended it
GRACE_PASSED = "grace_passed"  # the connection broke, and the client did not come back in time
REPLACED = "replaced"  # it was detached, and a new session of its tenant needed its place
BY_SERVER = "server"  # the server or its operator has ended it
FAILURES = tuple([case.name for case in CASES if case.consequence is not Consequence.DEFINED_VALUE])
_ENDING_FAILURES = tuple([case.name for case in CASES if case.consequence is Consequence.PROTOCOL])
END_REASONS = (GOODBYE, GRACE_PASSED, REPLACED, BY_SERVER, "server_fault", *_ENDING_FAILURES)

# Why there is no plan: the program or op itself, or the machine, as with a full disk. Then it is asked for again.
PLAN_REFUSALS = (OF_PROGRAM, OF_MACHINE) = ("program", "machine")

# Where a call is refused: at the check of its token, at the hello of a session, or in an upload or download.
DOORS = (TOKEN_DOOR, SESSION_DOOR, TRANSFER_DOOR) = ("token", "session", "transfer")


@dataclass
class Phase:
    """The number of times that a phase ran, and its total time."""

    count: int = 0
    total_ns: int = 0

    def add(self, ns: int) -> None:
        self.count += 1
        self.total_ns += ns


@dataclass
class Counters:
    """Totals since the process began. A histogram's buckets end at powers of two; the key of a bucket is its end."""

    ops: int = 0
    rows: int = 0  # of submissions: a loop is a row of each of its slices
    submissions: int = 0
    launches: int = 0
    tier0_launches: int = 0  # those of `launches` that ran one op
    frames: int = 0
    plans: int = 0
    plans_refused: int = 0
    plan_refusals: Counter[str] = field(default_factory=Counter)  # by cause
    kernels: int = 0  # compiled for a plan
    reused: int = 0  # compiled before the plan that uses them
    # Of the submissions that no limit made smaller: their rows, and the sessions that were ready with their programs.
    unlimited_submissions: int = 0
    unlimited_rows: int = 0
    ready_sessions: int = 0
    batches: Counter[str] = field(default_factory=Counter)  # by what ended them
    sessions_opened: int = 0
    sessions_resumed: int = 0
    sessions_ended: Counter[str] = field(default_factory=Counter)  # by reason
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)  # of calls, by door and name of the case
    failures: Counter[str] = field(default_factory=Counter)
    rows_per_submission: Counter[int] = field(default_factory=Counter)
    ops_per_launch: Counter[int] = field(default_factory=Counter)
    recent_failures: deque[RecentFailure] = field(default_factory=lambda: deque(maxlen=MOST_RECENT))
    recently_ended: deque[EndedSession] = field(default_factory=lambda: deque(maxlen=MOST_RECENT))
    slow_rows: deque[SlowRow] = field(default_factory=lambda: deque(maxlen=MOST_RECENT))
    decode: Phase = field(default_factory=Phase)
    plan: Phase = field(default_factory=Phase)
    compile: Phase = field(default_factory=Phase)
    queue: Phase = field(default_factory=Phase)
    device: Phase = field(default_factory=Phase)
    copy_out: Phase = field(default_factory=Phase)

    def failed(self, failure: Failure, session: str, now_s: float) -> None:
        """Counts a failure of a session, given its shown id. `now_s` is the Unix time."""
        self.failures[failure.case.name] += 1
        self.recent_failures.append(RecentFailure(when(now_s), session, failure.case.name, failure.text))

    def refused(self, door: str, case: str, calls: int = 1) -> None:
        """Counts calls that were refused at one of the `DOORS`. `case` is the name of a failure."""
        self.refusals[door, case] += calls

    def coalesced(self, rows: int, ready_sessions: int, ended_by: str) -> None:
        """Counts a batch; `ready_sessions` is 0 if a limit made it smaller."""
        self.batches[ended_by] += 1
        if ready_sessions:
            self.unlimited_submissions += 1
            self.unlimited_rows += rows
            self.ready_sessions += ready_sessions

    def planned(self, planning_ns: int, compiling_ns: int, *, kernels: int, compiled: int) -> None:
        """Counts a plan with `kernels` kernels. `compiled` of them were compiled for it, the others before."""
        self.plans += 1
        self.kernels += compiled
        self.reused += kernels - compiled
        self.plan.add(planning_ns)
        self.compile.add(compiling_ns)

    def ran(
        self, entry: ProgramEntry, loaded: LoadedPlan | None, rows: int, iterations: tuple[int, int], device_ns: int
    ) -> None:
        """Counts a submission.

        `iterations` are those of all its rows together and those of its longest row: one each, unless rows are loops.
        """
        in_all, longest = iterations
        ops = entry.program.op_count * in_all
        launches = ops if loaded is None else len(loaded.plan.launches) * longest
        self.ops += ops
        self.rows += rows
        self.submissions += 1
        self.launches += launches
        self.tier0_launches += launches if loaded is None else 0
        self.rows_per_submission[bucket(rows)] += 1
        entry.ran(rows)
        self.ops_per_launch[bucket(ops // max(launches, 1))] += launches
        self.device.add(device_ns)
