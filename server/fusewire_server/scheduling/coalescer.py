"""Chooses the next submission: rows of one program, one row a session, so that device time is shared fairly. Pure.

Ready rows gather in the queues of their sessions while the device works. When the device can take more, the coalescer
chooses the tenant that has used the least device time, and of this tenant the session that has used the least. The
program at the head of that session's queue is the program of the submission. Every other session with the same program
at the head of its queue adds a row. Rows are grouped by program, never by order of arrival, and no row waits for other
rows to arrive.

The method is start-time fair queueing on two levels: tenants, and the sessions of one tenant. When a tenant or session
has work again, its account is raised at least to that of the tenant or session served last, so that nobody saves up
device time by being idle. (Goyal, Vin, Cheng: Start-time Fair Queuing, 1996.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Row, Session

UNMEASURED_ROW_NS = 50_000  # the least that a row is assumed to cost before its program has run once


@dataclass
class Accounts:
    """Device time used by each key (a tenant, or a session of a tenant), on a clock that all keys share.

    `served_at_ns` is the shared clock: the time used by the account that was served last.
    """

    used_ns: dict[object, int] = field(default_factory=dict)
    served_at_ns: int = 0

    def enter(self, key: object) -> None:
        """Brings the account of a key that has work again up to the shared clock."""
        self.used_ns[key] = max(self.used_ns.get(key, 0), self.served_at_ns)

    def serve(self, key: object) -> None:
        """Advances the shared clock to the account of the key that is served."""
        self.served_at_ns = max(self.served_at_ns, self.used_ns[key])

    def charge(self, key: object, device_ns: int) -> None:
        """Adds device time. A negative amount corrects an estimate."""
        if key in self.used_ns:
            self.used_ns[key] += device_ns

    def drop(self, key: object) -> None:
        self.used_ns.pop(key, None)


@dataclass(frozen=True)
class Batch:
    """Rows of one program, taken from their queues. Each row was charged `row_ns` in advance.

    `ready_sessions` is the number of sessions whose next row is of this program and could run, in any lane. It is 0 if
    a limit made the batch smaller.
    """

    entry: ProgramEntry
    rows: tuple[Row, ...]
    row_ns: int
    ready_sessions: int = 0


class Coalescer:
    """Chooses batches. Owned by the loop thread."""

    def __init__(self, *, most_rows: int, submission_ns: int) -> None:
        self._most_rows = most_rows
        self._submission_ns = submission_ns
        self._busy: dict[bytes, Session] = {}
        self._tenants = Accounts()
        self._sessions: defaultdict[str, Accounts] = defaultdict(Accounts)  # by tenant

    def update(self, session: Session) -> None:
        """Notes that the session's queue has changed: rows were added or given up."""
        if not session.queue:
            self._busy.pop(session.session_id, None)
        elif session.session_id not in self._busy:
            self._busy[session.session_id] = session
            self._tenants.enter(session.tenant)
            self._sessions[session.tenant].enter(session.session_id)

    def remove(self, session: Session) -> None:
        """Forgets a session that has ended."""
        self._busy.pop(session.session_id, None)
        self._sessions[session.tenant].drop(session.session_id)

    def next_batch(
        self, open_lane: Callable[[Row], Hashable | None], rows_that_fit: Callable[[ProgramEntry], int]
    ) -> Batch | None:
        """Takes the rows of the next submission from their queues. Returns None if no queue's first row can run now.

        `open_lane` returns where a row would go, or None if the row cannot run now. All rows of a submission go to the
        same place. `rows_that_fit` returns the most rows of a program for which the device has memory.
        """
        if not self._busy:
            return None
        lanes: dict[Session, Hashable] = {}
        for session in self._busy.values():
            lane = open_lane(session.queue[0])
            if lane is not None:
                lanes[session] = lane
        if not lanes:
            return None
        alike, ready_sessions = self._first_and_alike(lanes)
        self._serve(alike[0])
        entry = alike[0].queue[0].entry
        row_ns = entry.row_ns or _first_estimate_ns(entry)
        if len(alike) > 1:
            most_rows = min(self._most_rows, rows_that_fit(entry), self._rows_in_time(entry))
            if most_rows < len(alike):
                alike, ready_sessions = alike[: max(most_rows, 1)], 0
        return Batch(entry, tuple([self._take(session, row_ns) for session in alike]), row_ns, ready_sessions)

    def _first_and_alike(self, lanes: Mapping[Session, Hashable]) -> tuple[list[Session], int]:
        """Returns the session to serve and then the sessions that may join, and the number of ready sessions.

        `lanes` has the lanes of all sessions whose next row can run.
        """
        if len(lanes) == 1:
            return list(lanes), 1
        ready = sorted(lanes, key=self._rank)
        entry, lane = ready[0].queue[0].entry, lanes[ready[0]]
        same = [session for session in ready if session.queue[0].entry is entry]
        return [session for session in same if lanes[session] == lane], len(same)

    def _rows_in_time(self, entry: ProgramEntry) -> int:
        if entry.row_ns:
            return entry.cost.rows_within(self._submission_ns)
        return max(1, self._submission_ns // _first_estimate_ns(entry))

    def settle(self, batch: Batch, measured_row_ns: int) -> None:
        """Replaces the advance charge for the rows of a batch by the measured time of a row."""
        self._correct(batch.rows, measured_row_ns - batch.row_ns)

    def refund(self, batch: Batch, rows: Iterable[Row]) -> None:
        """Takes back the advance charge for the rows of a batch that do not run."""
        self._correct(rows, -batch.row_ns)

    def charge(self, session: Session, device_ns: int) -> None:
        """Charges a session for device time outside its rows, or corrects the charge for its rows by a difference."""
        self._tenants.charge(session.tenant, device_ns)
        self._sessions[session.tenant].charge(session.session_id, device_ns)

    def _correct(self, rows: Iterable[Row], device_ns: int) -> None:
        for row in rows:
            self.charge(row.session, device_ns)

    def _rank(self, session: Session) -> tuple[int, int]:
        return self._tenants.used_ns[session.tenant], self._sessions[session.tenant].used_ns[session.session_id]

    def _serve(self, session: Session) -> None:
        self._tenants.serve(session.tenant)
        self._sessions[session.tenant].serve(session.session_id)

    def _take(self, session: Session, row_ns: int) -> Row:
        row = session.queue.popleft()
        self.charge(session, row_ns)
        self.update(session)
        return row


def _first_estimate_ns(entry: ProgramEntry) -> int:
    """Returns the assumed cost of a row before its program has run at its tier."""
    return max(UNMEASURED_ROW_NS, 0 if entry.loaded is None else entry.loaded.plan.cost.estimate_ns)
