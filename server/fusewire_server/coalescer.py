"""Who goes next: rows of one program, one a session, fairly by measured device time. Pure.

Ready rows gather in their sessions' queues while the device works. When it can take more, the tenant that has used
the least device time goes first, and within it the session that has; the program at the head of that session's queue
is the program of the submission. Every other session whose head is the same program adds a row: grouping is by
program, never by order of arrival, and no row is ever held back in hope of company.

Fairness is start-time fair queueing over two levels: an account that becomes busy again starts at the least used
busy account, so that idling earns nothing. (Goyal, Vin, Cheng: Start-time Fair Queuing, 1996.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fusewire_server.programs import ProgramEntry
from fusewire_server.session import Session
from fusewire_server.work import Row

UNMEASURED_ROW_NS = 50_000  # what a row is taken to cost before it has run once


@dataclass
class Account:
    """Device time used, on a clock that all accounts of a level share."""

    used_ns: int = 0
    is_busy: bool = False


@dataclass
class Accounts:
    """The accounts of one level (tenants, or sessions), by key."""

    by_key: dict[object, Account] = field(default_factory=dict)

    def enter(self, key: object) -> Account:
        """The account of a key that has work; if it had none it starts level with the least used busy one."""
        account = self.by_key.setdefault(key, Account())
        if not account.is_busy:
            busy = [other.used_ns for other in self.by_key.values() if other.is_busy]
            account.used_ns = max(account.used_ns, min(busy, default=account.used_ns))
            account.is_busy = True
        return account

    def leave(self, key: object) -> None:
        """The key has no work any more."""
        if key in self.by_key:
            self.by_key[key].is_busy = False

    def charge(self, key: object, device_ns: int) -> None:
        """Adds device time (less than none corrects an estimate)."""
        account = self.by_key.get(key)
        if account is not None:
            account.used_ns += device_ns

    def drop(self, key: object) -> None:
        self.by_key.pop(key, None)

    def used_ns(self, key: object) -> int:
        return self.by_key[key].used_ns


@dataclass(frozen=True)
class Batch:
    """Rows of one program, taken from their queues. `row_ns` is what each was charged in advance."""

    entry: ProgramEntry
    rows: tuple[Row, ...]
    row_ns: int


class Coalescer:
    """Chooses batches. Owned by the loop thread."""

    def __init__(self, *, most_rows: int, submission_ns: int) -> None:
        self._most_rows = most_rows
        self._submission_ns = submission_ns
        self._busy: dict[bytes, Session] = {}
        self._tenants = Accounts()
        self._sessions = Accounts()

    def enqueue(self, session: Session) -> None:
        """The session's queue holds rows."""
        if session.queue and session.session_id not in self._busy:
            self._busy[session.session_id] = session
            self._tenants.enter(session.tenant)
            self._sessions.enter(session.session_id)

    def remove(self, session: Session) -> None:
        """The session has ended."""
        self._retire(session)
        self._sessions.drop(session.session_id)

    def has_work(self) -> bool:
        return bool(self._busy)

    def next_batch(
        self, can_run: Callable[[ProgramEntry], bool], rows_that_fit: Callable[[ProgramEntry], int]
    ) -> Batch | None:
        """Takes the rows of the next submission from their queues; None if no head can run now."""
        ready = [session for session in self._in_turn() if can_run(session.queue[0].entry)]
        if not ready:
            return None
        entry = ready[0].queue[0].entry
        row_ns = entry.row_ns or UNMEASURED_ROW_NS
        most_rows = min(self._most_rows, rows_that_fit(entry), max(1, self._submission_ns // row_ns))
        companions = [session for session in ready if session.queue[0].entry is entry][: max(most_rows, 1)]
        return Batch(entry, tuple(self._take(session, row_ns) for session in companions), row_ns)

    def settle(self, batch: Batch, measured_row_ns: int) -> None:
        """Replaces the advance charge of a batch by what it took."""
        for row in batch.rows:
            self._charge(row.session, measured_row_ns - batch.row_ns)

    def _in_turn(self) -> list[Session]:
        return sorted(self._busy.values(), key=self._rank)

    def _rank(self, session: Session) -> tuple[int, int]:
        return self._tenants.used_ns(session.tenant), self._sessions.used_ns(session.session_id)

    def _take(self, session: Session, row_ns: int) -> Row:
        row = session.queue.popleft()
        self._charge(session, row_ns)
        if not session.queue:
            self._retire(session)
        return row

    def _charge(self, session: Session, device_ns: int) -> None:
        self._tenants.charge(session.tenant, device_ns)
        self._sessions.charge(session.session_id, device_ns)

    def _retire(self, session: Session) -> None:
        self._busy.pop(session.session_id, None)
        self._sessions.leave(session.session_id)
        if not any(other.tenant == session.tenant for other in self._busy.values()):
            self._tenants.leave(session.tenant)
