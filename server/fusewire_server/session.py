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

Fetches need no credit. What bounds them is what the client has not yet taken: beyond `limits.unread_bytes` values stay
on the device until it takes some (again, with nothing untaken one of any size may go).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from enum import Enum

from fusewire_protos.credit import Amount
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES
from fusewire_server.programs import Claim, ProgramEntry
from fusewire_server.work import NO_WORK, Answer, Beside, Failure, Fetching, Row, Value

# Uploads of a session that are told to the device and not yet written. Those of no bytes take no credit, and none holds
# a handle once it is freed.
MOST_WRITES = 4096
MOST_DOWNLOADS = 4  # calls that carry one answer at once: each holds a chunk of its own


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
    most_unread_bytes: int
    state: SessionState = SessionState.OPEN
    epoch: int = 1
    applied_frame: int = 0
    result_frame: int = 0
    programs: dict[int, ProgramEntry] = field(default_factory=dict)
    values: dict[int, Value] = field(default_factory=dict)
    large: dict[int, Value] = field(default_factory=dict)  # those of more than INLINE_BYTES
    fetches: dict[int, Fetching] = field(default_factory=dict)
    rejected_programs: dict[int, tuple[Failure, Claim]] = field(default_factory=dict)
    queue: deque[Row] = field(default_factory=deque)  # rows whose inputs are all issued, in order
    held_back: set[Row] = field(default_factory=set)  # rows that wait for an upload
    admitted: Amount = NO_WORK
    completed: Amount = NO_WORK
    live_bytes: int = 0
    device_ns: int = 0  # device time its rows have used
    answers: list[Answer] = field(default_factory=list)  # not yet sent
    unacknowledged: deque[tuple[int, list[Answer]]] = field(default_factory=deque)
    beside: dict[int, Beside] = field(default_factory=dict)  # answers that Download carries, by fetch
    reads: OrderedDict[int, Fetching] = field(default_factory=OrderedDict)  # of ready values, still to be told
    untaken: dict[int, int] = field(default_factory=dict)  # by fetch: host bytes held until it is acknowledged
    unread_bytes: int = 0  # of these and of what is beside
    writes: int = 0  # uploads told to the device and not yet written
    heard_at_ns: int = 0
    ops_total: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    @property
    def in_flight(self) -> Amount:
        return self.admitted.minus(self.completed)

    @property
    def may_go_on(self) -> bool:
        """Whether more entries may be applied; else they wait until the device has written some uploads."""
        return self.writes < MOST_WRITES

    def on(self, event: SessionEvent) -> None:
        """Moves to the next state. Raises CaseError, and changes nothing, if the event is not legal here."""
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            raise CaseError("out_of_turn", f"{event.value} in a session that is {self.state.value}")
        self.state = following

    def resume(self, acknowledged: int) -> None:
        """A new stream takes the session over; results the client has not seen are owed again."""
        self.acknowledge(acknowledged)
        self.on(SessionEvent.RESUME)
        self.epoch += 1
        owed = [answer for _, answers in self.unacknowledged for answer in answers]
        self.result_frame -= len(self.unacknowledged)  # the client has seen none of them and expects the next number
        self.unacknowledged.clear()
        self.answers[:0] = owed

    def accept(self, number: int) -> bool:
        """Whether frame `number` is to be applied now; False for one applied before. Raises CaseError on a gap."""
        if self.state is not SessionState.OPEN:
            raise CaseError("out_of_turn", f"frame {number} in a session that is {self.state.value}")
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
                self.unread_bytes -= self.untaken.pop(answer.fetch, 0)

    def may_read(self, size_bytes: int) -> bool:
        """Whether the host may hold that many more bytes for the client to take."""
        return self.unread_bytes == 0 or self.unread_bytes + size_bytes <= self.most_unread_bytes

    def begin_read(self, fetch: int, size_bytes: int) -> None:
        """A fetched value is on its way to the host."""
        self.untaken[fetch] = size_bytes
        self.unread_bytes += size_bytes

    def answer(self, fetch: int, data: memoryview) -> None:
        """The client is owed the value of a fetch."""
        self.fetches.pop(fetch, None)
        if len(data) <= INLINE_BYTES:
            self.answers.append(Answer(fetch, data, None))
            return
        self.beside[fetch] = Beside(data)
        self.untaken[fetch] = 0  # its bytes are counted with what is beside
        self.answers.append(Answer(fetch, None, None, len(data)))

    def answer_failure(self, fetch: int, failure: Failure) -> None:
        """The client is owed the reason why a fetch has no value."""
        self.fetches.pop(fetch, None)
        self.untaken.setdefault(fetch, 0)
        self.answers.append(Answer(fetch, None, failure))

    def tell_again(self, fetch: int) -> bool:
        """Whether a fetch whose answer was acknowledged still has its bytes here; then the client is told once more."""
        beside = self.beside.get(fetch)
        if beside is None or not beside.is_wanted:
            return False
        self.untaken[fetch] = 0
        self.answers.append(Answer(fetch, None, None, len(beside.data)))
        return True

    def drop_read(self, fetch: int) -> None:
        """A value has come to the host that the client abandoned meanwhile."""
        self.fetches.pop(fetch, None)
        self.unread_bytes -= self.untaken.pop(fetch, 0)

    def begin_download(self, fetch: int) -> Beside | None:
        """What a call is to carry; None if there is nothing. Raises CaseError if enough calls carry it."""
        beside = self.beside.get(fetch)
        if beside is None or not beside.is_wanted:
            return None
        if beside.calls >= MOST_DOWNLOADS:
            raise CaseError("too_many_calls", f"{MOST_DOWNLOADS} calls carry the answer to fetch {fetch}; no more may")
        beside.calls += 1
        return beside

    def end_download(self, fetch: int, beside: Beside, *, is_complete: bool) -> None:
        """A call carries it no longer; the bytes go when the client has them and no call needs them."""
        beside.calls -= 1
        if is_complete:
            beside.is_wanted = False
        self._drop_unwanted(fetch, beside)

    def forget_beside(self, fetch: int) -> None:
        """The client does not want an answer. One inside a frame is there until that is acknowledged."""
        beside = self.beside.get(fetch)
        if beside is not None:
            beside.is_wanted = False
            self._drop_unwanted(fetch, beside)

    def forget_answers(self) -> None:
        """The session has ended: nobody will take what it is owed."""
        self.answers.clear()
        self.unacknowledged.clear()
        self.fetches.clear()
        self.reads.clear()
        self.unread_bytes -= sum(self.untaken.values())
        self.untaken.clear()
        for fetch in list(self.beside):
            self.forget_beside(fetch)

    def _drop_unwanted(self, fetch: int, beside: Beside) -> None:
        if beside.is_wanted or beside.calls:
            return
        if self.beside.get(fetch) is beside:
            del self.beside[fetch]
        self.unread_bytes -= len(beside.data)

    def take_answers(self, most_bytes: int) -> tuple[int, list[Answer]]:
        """The answers to send now and the number of the frame that carries them (0 if there are none).

        A frame takes answers until those inside it exceed `most_bytes`; the rest go with the next.
        """
        if not self.answers:
            return 0, []
        count = _count_until(self.answers, most_bytes)
        answers, self.answers = self.answers[:count], self.answers[count:]
        self.result_frame += 1
        self.unacknowledged.append((self.result_frame, answers))
        return self.result_frame, answers

    def admit(self, amount: Amount) -> None:
        """Counts a segment or upload as in flight. Raises CaseError if the client had no credit for it."""
        admitted = self.admitted.plus(amount)
        if self.admitted != self.completed:
            in_flight = admitted.minus(self.completed)
            if not in_flight.fits(self.credit):
                raise CaseError("credit_overdrawn", _overdrawn(in_flight, self.credit))
        self.admitted = admitted

    def complete(self, amount: Amount) -> None:
        """The device has done with that much: credit comes back."""
        self.completed = self.completed.plus(amount)


def _overdrawn(wanted: Amount, credit: Amount) -> str:
    """Names each kind of credit that does not suffice, by the setting it comes from."""
    kinds = zip(Amount._fields, wanted, credit, strict=True)
    short = [f"{sum_} {kind} in flight; limits.credit_{kind} = {most}" for kind, sum_, most in kinds if sum_ > most]
    return ", ".join(short)


def _count_until(answers: list[Answer], most_bytes: int) -> int:
    """How many answers make a frame: one at least, and so many that they just exceed `most_bytes`."""
    frame_bytes = 0
    for count, answer in enumerate(answers, 1):
        frame_bytes += _ANSWER_BYTES
        if answer.data is not None:
            frame_bytes += len(answer.data)
        elif answer.failure is not None:
            frame_bytes += len(answer.failure.text)
        if frame_bytes > most_bytes:
            return count
    return len(answers)


_ANSWER_BYTES = 64  # what an answer takes in a frame beside its value or the text of its failure
