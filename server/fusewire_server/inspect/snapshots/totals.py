"""What a server has done since it started: counts, and times by phase. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fusewire_protos.errors import CASES
from fusewire_server.figures import Described, counter, part
from fusewire_server.inspect.requests.refusals import CASES as INSPECTION_CASES
from fusewire_server.inspect.requests.refusals import INSPECTION_DOOR
from fusewire_server.programs.counters import (
    END_REASONS,
    FAILURES,
    PLAN_REFUSALS,
    SESSION_DOOR,
    TOKEN_DOOR,
    TRANSFER_DOOR,
)
from fusewire_server.scheduling.coalescer import BatchEnd

_REFUSALS = {  # the cases of each door
    TOKEN_DOOR: ("unauthenticated",),
    SESSION_DOOR: FAILURES,
    TRANSFER_DOOR: FAILURES,
    INSPECTION_DOOR: INSPECTION_CASES,
}


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
    """Number of connections that resumed a session whose last one was lost after it had sent something."""
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
        metric_value=lambda totals: totals.launches - totals.tier0_launches,
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
