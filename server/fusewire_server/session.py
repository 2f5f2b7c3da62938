"""A session as a table of states: who may send what, what has been applied, what is owed. No I/O, no clock.

                 hello            disconnect             resume
    (none) ───────────────▶ OPEN ───────────▶ DETACHED ─────────▶ OPEN (epoch + 1)
                              │ goodbye, failure   │ grace passed
                              └────────▶ CLOSED ◀──┘

Numbered frames: the server applies frame n + 1 only. A frame it has already applied is dropped (the client repeats
what it saw no acknowledgement for); a later one is a gap, which no correct client leaves. Frames with number 0 are
outside the numbering and may carry only hello, acknowledgement or goodbye. The server numbers the frames that carry
results and keeps each until the client acknowledges it.

Credit: what is in flight is what was admitted less what the device has completed. The client counts the same with
the totals it is sent, which lag behind, so a correct client never overdraws. With nothing in flight one segment of
any legal size is admitted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from fusewire_protos.errors import CaseError
from fusewire_server.programs import ProgramEntry
from fusewire_server.work import NO_WORK, Amount, Answer, Failure, Fetching, Row, Value


class SessionState(Enum):
    OPEN = "open"
    DETACHED = "detached"  # the stream broke; the session waits to be resumed
    CLOSED = "closed"


class SessionEvent(Enum):
    DISCONNECT = "disconnect"
    RESUME = "resume"
    END = "end"  # goodbye, a protocol failure, or the grace has passed


TRANSITIONS: dict[tuple[SessionState, SessionEvent], SessionState] = {
    (SessionState.OPEN, SessionEvent.DISCONNECT): SessionState.DETACHED,
    (SessionState.OPEN, SessionEvent.END): SessionState.CLOSED,
    (SessionState.DETACHED, SessionEvent.RESUME): SessionState.OPEN,
    (SessionState.DETACHED, SessionEvent.END): SessionState.CLOSED,
    # A client may notice a broken connection before the server does.
    (SessionState.OPEN, SessionEvent.RESUME): SessionState.OPEN,
}


@dataclass(eq=False)
class Session:
    """All that the server knows of one session. Owned by the loop thread."""

    session_id: bytes
    tenant: str
    client: str
    peer: str
    credit: Amount
    state: SessionState = SessionState.OPEN
    epoch: int = 1
    applied_frame: int = 0
    result_frame: int = 0
    programs: dict[int, ProgramEntry] = field(default_factory=dict)
    values: dict[int, Value] = field(default_factory=dict)
    fetches: dict[int, Fetching] = field(default_factory=dict)
    rejected_programs: dict[int, tuple[Failure, tuple[int, ...]]] = field(default_factory=dict)  # and live results
    queue: deque[Row] = field(default_factory=deque)  # rows whose inputs are all issued, in order
    held_back: dict[int, Row] = field(default_factory=dict)  # by base: rows that wait for an upload
    admitted: Amount = NO_WORK
    completed: Amount = NO_WORK
    live_bytes: int = 0
    device_ns: int = 0  # device time its rows have used
    answers: list[Answer] = field(default_factory=list)  # not yet sent
    unacknowledged: deque[tuple[int, list[Answer]]] = field(default_factory=deque)
    beside: dict[int, memoryview] = field(default_factory=dict)  # answers that Download carries, by fetch
    heard_at_ns: int = 0
    ops_total: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    @property
    def in_flight(self) -> Amount:
        return self.admitted.minus(self.completed)

    def on(self, event: SessionEvent) -> None:
        """Moves to the next state. Raises CaseError, and changes nothing, if the event is not legal here."""
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            raise CaseError("out_of_turn", f"{event.value} in a session that is {self.state.value}")
        self.state = following

    def resume(self, acknowledged: int) -> None:
        """A new stream takes the session over; results the client has not seen are owed again."""
        self.on(SessionEvent.RESUME)
        self.epoch += 1
        self.acknowledge(acknowledged)
        owed = [answer for _, answers in self.unacknowledged for answer in answers]
        self.unacknowledged.clear()
        self.answers[:0] = owed

    def accept(self, number: int) -> bool:
        """Whether frame `number` is to be applied now; False for one applied before. Raises CaseError on a gap."""
        if number <= self.applied_frame:
            return False
        if number != self.applied_frame + 1:
            raise CaseError("frame_gap", f"frame {number} follows frame {self.applied_frame}")
        self.applied_frame = number
        return True

    def acknowledge(self, number: int) -> None:
        """The client has seen result frames up to `number`. Raises CaseError for one that was never sent."""
        if number > self.result_frame:
            raise CaseError(
                "undecodable_frame", f"frame {number} is acknowledged; the last sent is {self.result_frame}"
            )
        while self.unacknowledged and self.unacknowledged[0][0] <= number:
            _, answers = self.unacknowledged.popleft()
            for answer in answers:
                self.beside.pop(answer.fetch, None)

    def take_answers(self) -> tuple[int, list[Answer]]:
        """The answers to send now and the number of the frame that carries them (0 if there are none)."""
        if not self.answers:
            return 0, []
        self.result_frame += 1
        answers, self.answers = self.answers, []
        self.unacknowledged.append((self.result_frame, answers))
        return self.result_frame, answers

    def admit(self, amount: Amount) -> None:
        """Counts a segment or upload as in flight. Raises CaseError if the client had no credit for it."""
        in_flight = self.in_flight
        if in_flight.segments and not in_flight.plus(amount).fits(self.credit):
            raise CaseError("credit_overdrawn", f"{in_flight} in flight and {amount} more; the credit is {self.credit}")
        self.admitted = self.admitted.plus(amount)

    def complete(self, amount: Amount) -> None:
        """The device has done with that much: credit comes back."""
        self.completed = self.completed.plus(amount)

    def pending_answer_bytes(self) -> int:
        """Bytes of results that the client has not acknowledged."""
        waiting = [answer for _, answers in self.unacknowledged for answer in answers]
        return sum(len(answer.data) for answer in (*waiting, *self.answers) if answer.data is not None)
