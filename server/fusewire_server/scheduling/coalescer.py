"""Chooses the next submission: rows of one program, one row a session, so that device time is shared fairly. Pure.

Ready rows gather in the queues of their sessions while the device works. When the device can take more, the coalescer
chooses the tenant that has used the least device time, and of this tenant the session that has used the least. The
program at the head of that session's queue is the program of the submission. Every other session with the same program
at the head of its queue adds a row. Rows are grouped by program, never by order of arrival, and no row waits for other
rows to arrive.

Of a row that is a loop, a submission takes as many iterations as fit in its time. The others follow in later
submissions, which newcomers may join. A loop whose session has used more time than the session that was chosen runs no
longer than that session's row. Else the short rows of one session would wait for a slice of another session's loop each
time, and the loop would get ever further ahead.

The method is start-time fair queueing on two levels: tenants, and the sessions of one tenant (see `accounts`).

A choice takes time in proportion to the sessions that have the same program at the head, and not to all busy sessions:
heaps hold the accounts in order, and a table holds the sessions by the program at the head of their queue. It also
passes over each session with less device time whose next row cannot run now, which takes about 2 µs a session.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import Enum

from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.accounts import TenantAccounts
from fusewire_server.sessions.iterations import ONCE
from fusewire_server.sessions.session import Row, Session

OpenLane = Callable[[Row], Hashable | None]

UNMEASURED_ROW_NS = 50_000  # the least that a row is assumed to cost before its program has run once
_OP_NS = 10_000  # assumed for an op that runs by itself
MOST_ITERATIONS = 8192  # of a row in a submission, because each may have its slots


class BatchEnd(Enum):
    """Tells why a batch has no more rows."""

    ALONE = "alone"  # no other session has a row of the program
    EVERYBODY = "everybody"  # all sessions that were ready have joined
    LANE = "lane"  # other sessions were ready in another lane
    ROWS = "rows"  # device.most_rows
    MEMORY = "memory"  # the device's memory for intermediate values
    TIME = "time"  # device.submission_s


@dataclass(eq=False)
class Batch:
    """Rows of one program, taken from their queues. Each iteration of a row was charged `row_ns` in advance.

    `spans` holds the rows, each with the iterations of it that run. `ready_sessions` is the number of sessions whose
    next row is of this program and could run, in any lane. It is 0 if a limit made the batch smaller.
    """

    entry: ProgramEntry
    spans: Mapping[Row, range]
    row_ns: int
    ready_sessions: int = 0
    ended_by: BatchEnd = BatchEnd.ALONE

    @property
    def iterations(self) -> tuple[int, int]:
        """How many iterations run: of all rows together, and of the row that runs the most of them."""
        counts = [*map(len, self.spans.values())]
        return sum(counts), max(counts)


class Coalescer:
    """Chooses batches. The engine thread owns this object."""

    def __init__(self, *, most_rows: int, submission_ns: int) -> None:
        self._most_rows = most_rows
        self._submission_ns = submission_ns
        self._busy: dict[bytes, Session] = {}
        # program -> the busy sessions whose next row is of this program
        self._with_head: defaultdict[ProgramEntry, dict[bytes, Session]] = defaultdict(dict)
        self._heads: dict[bytes, ProgramEntry] = {}  # id of a busy session -> the program of its next row
        self._accounts: TenantAccounts[Session] = TenantAccounts()  # of device time

    def update(self, session: Session) -> None:
        """Notes that the session's queue has changed: rows were added or given up."""
        key = session.session_id
        if not session.queue:
            self._leave(session)
            return
        if key not in self._busy:
            self._busy[key] = session
            self._accounts.note_work(session)
        head = session.queue[0].entry
        known = self._heads.get(key)
        if known is not head:
            self._forget_head(key)
            self._heads[key] = head
            self._with_head[head][key] = session

    def remove(self, session: Session) -> None:
        """Forgets a session that has ended."""
        self._leave(session)
        self._accounts.drop(session)

    def _leave(self, session: Session) -> None:
        key = session.session_id
        if self._busy.pop(key, None) is None:
            return
        self._forget_head(key)
        self._accounts.note_idle(session)

    def _forget_head(self, key: bytes) -> None:
        head = self._heads.pop(key, None)
        if head is not None:
            del self._with_head[head][key]
            if not self._with_head[head]:
                del self._with_head[head]

    def next_batch(self, open_lane: OpenLane, rows_that_fit: Callable[[ProgramEntry], int]) -> Batch | None:
        """Takes the rows of the next submission from their queues. Returns None if no queue's first row can run now.

        `open_lane` returns None if a row cannot run now, and otherwise a key: only rows with equal keys may share a
        submission (`Lanes.open_to`). `rows_that_fit` returns the most rows of a program that fit in the device's
        memory.
        """
        found = self._first(open_lane)
        if found is None:
            return None
        first, lane = found
        self._accounts.serve(first)
        entry = first.queue[0].entry
        row_ns = entry.row_ns or _first_estimate_ns(entry)
        alike, ready_sessions = self._alike(first, lane, open_lane)
        ended_by = _end_of(len(alike), ready_sessions)
        if len(alike) > 1:
            most_rows = min(self._most_rows, rows_that_fit(entry), self._rows_in_time(entry))
            if most_rows < len(alike):
                alike, ready_sessions = alike[: max(most_rows, 1)], 0
                ended_by = self._limit(entry, most_rows, rows_that_fit)
        spans = self._spans(entry, alike)
        for session, span in zip(alike, spans.values(), strict=True):
            self._take(session, row_ns * len(span))
        return Batch(entry, spans, row_ns, ready_sessions, ended_by)

    def _first(self, open_lane: OpenLane) -> tuple[Session, Hashable] | None:
        """Returns the session to serve and the lane key of its next row, or None if no session's next row can run."""
        if not self._busy:
            return None
        if len(self._busy) == 1:
            (only,) = self._busy.values()
            lane = open_lane(only.queue[0])
            return None if lane is None else (only, lane)
        with closing(self._accounts.in_order()) as sessions:
            for session in sessions:
                lane = open_lane(session.queue[0])
                if lane is not None:
                    return session, lane
        return None

    def _alike(self, first: Session, lane: Hashable, open_lane: OpenLane) -> tuple[list[Session], int]:
        """Returns a list of `first` and the sessions that may join its submission, and the number of ready sessions."""
        same = self._with_head[self._heads[first.session_id]]
        if len(same) == 1:
            return [first], 1
        lanes = {session: open_lane(session.queue[0]) for session in same.values()}
        joining = [session for session in same.values() if lanes[session] == lane and session is not first]
        joining.sort(key=self._accounts.rank)
        return [first, *joining], sum(each is not None for each in lanes.values())

    def _limit(self, entry: ProgramEntry, most_rows: int, rows_that_fit: Callable[[ProgramEntry], int]) -> BatchEnd:
        """Returns the limit that allows only `most_rows` rows."""
        if most_rows == self._most_rows:
            return BatchEnd.ROWS
        return BatchEnd.MEMORY if most_rows == rows_that_fit(entry) else BatchEnd.TIME

    def _rows_in_time(self, entry: ProgramEntry) -> int:
        if entry.row_ns:
            return entry.cost.rows_within(self._submission_ns)
        return max(1, self._submission_ns // _first_estimate_ns(entry))

    def _spans(self, entry: ProgramEntry, sessions: Sequence[Session]) -> Mapping[Row, range]:
        """Returns the next rows of sessions, each with the iterations that run. The first session was chosen."""
        rows = [session.queue[0] for session in sessions]
        loops = [row for row in rows if row.iterations is not None]
        if not loops:
            return dict.fromkeys(rows, ONCE)
        expected_ns = entry.cost.expected_ns(len(rows)) or len(rows) * _first_estimate_ns(entry)
        most = min(max(int(self._submission_ns / expected_ns), 1), MOST_ITERATIONS)
        of_first = len(_span(rows[0], most))
        return {
            row: _span(row, of_first if self._is_ahead(session, sessions[0]) else most)
            for session, row in zip(sessions, rows, strict=True)
        }

    def _is_ahead(self, session: Session, first: Session) -> bool:
        """Returns whether a session, or its tenant, has used more time than the first by more than a submission."""
        return self._accounts.lead_ns(session, first) > self._submission_ns

    def settle(self, batch: Batch, measured_row_ns: int) -> None:
        """Replaces the advance charge for the rows of a batch by the measured time of an iteration of a row."""
        first, *others = batch.spans
        self._correct(batch, batch.spans, measured_row_ns - batch.row_ns)
        for row in others:
            self._accounts.bound_lead(row.session, first.session, measured_row_ns * len(batch.spans[row]))

    def refund(self, batch: Batch, rows: Iterable[Row]) -> None:
        """Takes back the advance charge for the rows of a batch that do not run."""
        self._correct(batch, rows, -batch.row_ns)

    def charge(self, session: Session, device_ns: int) -> None:
        """Charges a session for device time outside its rows, or corrects the charge for its rows by a difference."""
        self._accounts.charge(session, device_ns)

    def _correct(self, batch: Batch, rows: Iterable[Row], iteration_ns: int) -> None:
        for row in rows:
            self.charge(row.session, iteration_ns * len(batch.spans[row]))

    def _take(self, session: Session, device_ns: int) -> None:
        """Takes the next row of a session, which is charged this time in advance."""
        session.queue.popleft()
        self.charge(session, device_ns)
        self.update(session)


def _span(row: Row, most: int) -> range:
    """Returns the next iterations of a row, at most so many. A row that is no loop has one."""
    loop = row.iterations
    return ONCE if loop is None else range(loop.begun, min(loop.begun + most, loop.count))


def _end_of(rows: int, ready_sessions: int) -> BatchEnd:
    """Tells why a batch that no limit made smaller has no more rows."""
    if rows < ready_sessions:
        return BatchEnd.LANE
    return BatchEnd.ALONE if rows == 1 else BatchEnd.EVERYBODY


def _first_estimate_ns(entry: ProgramEntry) -> int:
    """Returns the assumed cost of an iteration of a row before its program has run at its tier."""
    if entry.loaded is None:
        return max(UNMEASURED_ROW_NS, _OP_NS * entry.program.op_count)
    return max(UNMEASURED_ROW_NS, entry.loaded.plan.cost.estimate_ns)
