"""What happened last: values that failed, sessions that ended, and segments that took long. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from fusewire_protos.session_name import shown_id
from fusewire_server.figures import Described

SLOW_NS = 10_000_000
MOST_RECENT = 128  # of each that are kept


@dataclass(frozen=True)
class RecentFailure(Described):
    """Why a value of a session will never exist."""

    at: str
    """When it failed, ISO 8601, UTC."""
    session: str
    """Shown id of the session."""
    case: str
    """Name of the case."""
    text: str
    """What was wrong, as the client is told."""


@dataclass(frozen=True)
class EndedSession(Described):
    """A session that has ended."""

    at: str
    """When it ended, ISO 8601, UTC."""
    session: str
    """Shown id of the session."""
    name: str
    """What its user called it, or empty."""
    tenant: str
    """Name of its tenant."""
    client: str
    """What the client said of itself."""
    reason: str
    """Why it ended: the name of a failure, or `goodbye`, `grace_passed`, `replaced` or `server`."""
    text: str
    """What the server told the client of that; or empty."""


@dataclass(frozen=True)
class SlowSegment(Described):
    """A segment that took at least 10 ms from its arrival until the device had completed it.

    It has the ops `base` to `base + ops - 1`. The client's `session.line_of` names the line of each.
    """

    at: str
    """When it was completed, ISO 8601, UTC."""
    session: str
    """Shown id of the session."""
    program: str
    """Digest of the program."""
    base: int
    """Handle of op 0; op i has the handle base + i, for i from 0 to ops - 1."""
    ops: int
    """Ops of the segment; of a loop, the ops of its body, with the handles of the first iteration."""
    iterations: int
    """How often these ops ran: 1, or the iterations of a loop."""
    tier: int
    """0 if it ran op by op, 1 if it ran by a plan."""
    rows: int
    """Rows of its submission; of a loop in several submissions, of the last."""
    total_s: float
    """Seconds from the arrival to the end: queue_s, order_s and device_s."""
    queue_s: float
    """Seconds until the device was told to run it (of a loop: its last part), uploads awaited included."""
    order_s: float
    """Seconds from then to the end without device_s: waiting for other work, launching, reporting."""
    device_s: float
    """Device time of its submission, in seconds."""
    planning_s: float
    """Seconds of planning its program, for which segments do not wait."""
    compiling_s: float
    """Seconds of compiling its program, for which segments do not wait."""


class SlowRow(NamedTuple):
    """What is noted of a slow row when it has ended, on the way of every row: people see it as a `SlowSegment`."""

    at_s: float  # Unix time
    session_id: bytes
    digest: bytes
    base: int
    ops: int
    iterations: int
    tier: int
    rows: int
    total_ns: int
    queue_ns: int
    device_ns: int
    planning_ns: int
    compiling_ns: int

    def shown(self) -> SlowSegment:
        return SlowSegment(
            at=when(self.at_s),
            session=shown_id(self.session_id),
            program=self.digest.hex(),
            base=self.base,
            ops=self.ops,
            iterations=self.iterations,
            tier=self.tier,
            rows=self.rows,
            total_s=self.total_ns / 1e9,
            queue_s=self.queue_ns / 1e9,
            order_s=max(self.total_ns - self.queue_ns - self.device_ns, 0) / 1e9,
            device_s=self.device_ns / 1e9,
            planning_s=self.planning_ns / 1e9,
            compiling_s=self.compiling_ns / 1e9,
        )


def when(unix_s: float) -> str:
    """Returns a time as these records tell it: ISO 8601, UTC."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")
