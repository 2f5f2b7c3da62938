"""Holds the state of a session: its transitions, values, rows and credit. No I/O, no clock.

                 hello            disconnect             resume
    (none) ───────────────▶ OPEN ───────────▶ DETACHED ─────────▶ OPEN (epoch + 1)
                              │ goodbye, failure   │ grace passed
                              └────────▶ CLOSED ◀──┘

Numbered frames: the server applies frame n + 1 only. A frame it has already applied is dropped (the client repeats
what it saw no acknowledgement for); a later one is a gap, which no correct client leaves. Frames with number 0 are
outside the numbering and may carry only hello, acknowledgement or goodbye.

Credit: what is in flight is what was admitted less what the device has completed. The client counts the same with
the totals it is sent, which lag behind, so a correct client never overdraws. With nothing in flight one segment of
any legal size is admitted.

Fetches need no credit; `answers` says what bounds them.

A session holds values, rows and fetches, which know the session that they are of: so they stand here too. All is owned
by the loop thread, but for `Value.block`, which is the device thread's.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from enum import Enum

from fusewire_kernels.devices.base import Block
from fusewire_protos.credit import NO_WORK, Amount
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Scalar
from fusewire_protos.shapes import Spec
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import Claim, ProgramEntry
from fusewire_server.sessions.answers import Answers

# Uploads of a session that are told to the device and not yet written. Those of no bytes take no credit, and none holds
# a handle once it is freed.
MOST_WRITES = 4096


class ValueState(Enum):
    """How far a value has come.

    AWAITED → (ISSUED →) READY, and from each of them → FAILED (from READY if the device finds no room).
    """

    AWAITED = "awaited"  # its bytes are on their way, or its producer waits for such bytes
    ISSUED = "issued"  # its producer stands in a queue: whatever is queued later may use it
    READY = "ready"  # told to the device: whatever is told later may use it
    FAILED = "failed"
    STAND_IN = "stand-in"  # for good: fills the place of an input that failed, in one row


class Value:
    """One array of a session: from the entry that declares it until its handle and its last reader are gone."""

    __slots__ = (
        "block",
        "failure",
        "fetches",
        "handle",
        "is_named",
        "readers",
        "size_bytes",
        "spec",
        "state",
        "waiting",
    )

    def __init__(self, handle: int, spec: Spec, state: ValueState) -> None:
        self.handle = handle
        self.spec = spec
        self.size_bytes = spec.size_bytes
        self.state = state
        self.is_named = True  # the client still holds the handle
        self.readers = 0  # queued rows and fetches that will read it
        self.failure: Failure | None = None
        self.waiting: dict[Row, None] = {}  # rows held back until this value is issued, in order
        self.fetches: dict[int, Fetching] = {}  # fetches held back until this value is ready, by id
        self.block: Block | None = None  # the device thread's

    @property
    def is_dead(self) -> bool:
        """Whether nobody can read it any more."""
        return not self.is_named and self.readers == 0


def failure_of(value: Value) -> Failure:
    """Why a value that has failed never came to be."""
    assert value.failure is not None, "a failed value carries its failure"
    return value.failure


class Row:
    """A segment on its way to the device: one row of a coming submission."""

    __slots__ = (
        "base",
        "entry",
        "inputs",
        "outputs",
        "queued_at_ns",
        "scalars",
        "session",
        "starts",
        "waits_for",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - a record of what a segment says
        self,
        session: Session,
        entry: ProgramEntry,
        base: int,
        inputs: list[Value],
        outputs: list[Value],
        scalars: tuple[Scalar, ...],
        starts: tuple[int, ...],
        queued_at_ns: int,
    ) -> None:
        self.session = session
        self.entry = entry
        self.base = base
        self.inputs = inputs
        self.outputs = outputs  # one a live result, in order
        self.scalars = scalars
        self.starts = starts
        self.waits_for = 0  # inputs that are not yet issued
        self.queued_at_ns = queued_at_ns


class Fetching:
    """A fetch that has not been answered."""

    __slots__ = ("fetch", "is_abandoned", "session", "told_at_ns", "value")

    def __init__(self, session: Session, fetch: int, value: Value) -> None:
        self.session = session
        self.fetch = fetch
        self.value = value
        self.is_abandoned = False
        self.told_at_ns = 0  # when the device was told to bring it


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
    answers: Answers
    state: SessionState = SessionState.OPEN
    epoch: int = 1
    applied_frame: int = 0
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
    reads: OrderedDict[int, Fetching] = field(default_factory=OrderedDict)  # of ready values, still to be told
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
        self.answers.acknowledge(acknowledged)
        self.on(SessionEvent.RESUME)
        self.epoch += 1
        self.answers.owe_again()

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

    def answer(self, fetch: int, data: memoryview) -> None:
        """The client is owed the value of a fetch."""
        self.fetches.pop(fetch, None)
        self.answers.add(fetch, data)

    def answer_failure(self, fetch: int, failure: Failure) -> None:
        """The client is owed the reason why a fetch has no value."""
        self.fetches.pop(fetch, None)
        self.answers.add_failure(fetch, failure)

    def drop_read(self, fetch: int) -> None:
        """A value has come to the host that the client abandoned meanwhile."""
        self.fetches.pop(fetch, None)
        self.answers.drop_read(fetch)

    def forget_answers(self) -> None:
        """The session has ended: nobody will take what it is owed."""
        self.fetches.clear()
        self.reads.clear()
        self.answers.forget_all()

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
