"""Holds the state of a session: its transitions, values, rows and credit. No I/O, no clock.

                 hello            disconnect             resume
    (none) ───────────────▶ OPEN ───────────▶ DETACHED ─────────▶ OPEN (epoch + 1)
                              │ goodbye, failure   │ grace passed
                              └────────▶ CLOSED ◀──┘

Numbered frames: after frame n the server applies only frame n + 1. The server drops a frame that it has applied
already, because a client sends each frame again until the server acknowledges it. A number above n + 1 is an error,
because a correct client leaves no gap. Frames with number 0 are outside the numbering and may carry only hello,
acknowledgement or goodbye.

Credit: the amount in flight is the admitted amount less the amount that the device has completed. The client computes
the amount in flight from totals that the server sends. These totals may be old but are never too high, so a correct
client never overdraws its credit. If nothing is in flight, one segment of any legal size is admitted. A session has
used up its credit if another segment or upload like the last one does not fit, until the device completes some of its
work. Whether the client has more to send then, only the client knows.

Fetches need no credit, because the module `answers` bounds them.

`Value`, `Row` and `PendingFetch` are in the same file as `Session`, because they refer to each other. The engine thread
owns all of this state, except `Value.block` and `Row.failed_ops`, which the device thread owns until the row has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import repeat
from typing import TYPE_CHECKING

from fusewire_kernels.devices.base import Block
from fusewire_protos.credit import NO_WORK, Amount
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Scalar, in_iteration
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.session_name import shown_id
from fusewire_server.programs.claim import Claim
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.device_share import NOBODYS
from fusewire_server.sessions.host_bytes import TenantBytes, row_bytes
from fusewire_server.sessions.profile import Profile
from fusewire_server.sessions.tables.answers import Answers
from fusewire_server.sessions.tables.failed_handles import FailedHandles
from fusewire_server.sessions.tables.packed_values import PackedValues
from fusewire_server.sessions.tables.salted_table import SaltedTable
from fusewire_server.sessions.tenant_usage import TenantUsage

if TYPE_CHECKING:
    from fusewire_server.sessions.iterations import Iterations

# The most uploads of a session that the device has been told to write and has not written. Neither credit nor the limit
# on handles bounds these uploads: an upload of 0 bytes takes no credit, and the client may free an upload's handle
# before the upload is written.
MOST_WRITES = 4096


NO_OP = -1  # the op index of a value that no op computes


class ValueState(Enum):
    """The states of a value.

    A value goes from AWAITED (through ISSUED, if a row computes it) to READY. From each of these states it may go to
    FAILED (from READY if the device finds no memory).
    """

    AWAITED = "awaited"  # an upload that has not come, or the result of a row that waits for such an upload
    ISSUED = "issued"  # the row that computes it is in a queue, so that rows queued later may use it
    READY = "ready"  # the device has been told to compute or write it, so that later orders may use it
    FAILED = "failed"
    STAND_IN = "stand-in"  # a stand-in has no other state; it replaces a failed input in one row


class Value:
    """One array of a session.

    A value lives from the entry that declares it until the client has freed the handle and no queued row or fetch will
    read the value.
    """

    __slots__ = (
        "block",
        "failure",
        "fetches",
        "handle",
        "is_named",
        "made_at_ns",
        "op_index",
        "readers",
        "share",
        "size_bytes",
        "spec",
        "state",
        "waiting",
    )

    def __init__(self, handle: int, spec: Spec, state: ValueState, made_at_ns: int = 0, op_index: int = NO_OP) -> None:
        self.handle = handle
        self.spec = spec
        self.made_at_ns = made_at_ns  # when the entry came that declares it
        self.op_index = op_index  # of the op that computes it, in its segment
        self.size_bytes = spec.size_bytes
        self.state = state
        self.is_named = True  # whether the client still holds the handle
        self.readers = 0  # number of queued rows and fetches that will read it
        self.failure: Failure | None = None
        # The next two hold rows until this value is issued, in order, and fetches, by their number, until it is ready.
        # Most values never hold any, and have no tables.
        self.waiting: dict[Row, None] | None = None
        self.fetches: SaltedTable[PendingFetch] | None = None
        self.block: Block | None = None  # the device thread owns it
        self.share = NOBODYS  # in which its block counts

    @property
    def is_dead(self) -> bool:
        """Tells whether nobody can read the value any more."""
        return not self.is_named and self.readers == 0


def failure_of(value: Value) -> Failure:
    """Returns the failure of a failed value."""
    assert value.failure is not None, "a failed value has its failure"
    return value.failure


class Row:
    """A segment on its way to the device, where it becomes a row of a submission, or of several if it repeats."""

    __slots__ = (
        "amount",
        "base",
        "entry",
        "failed_ops",
        "host_bytes",
        "inputs",
        "iterations",
        "outputs",
        "queued_at_ns",
        "scalars",
        "session",
        "starts",
        "waits_for",
        "waits_since_ns",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - one argument for each part of a segment
        self,
        session: Session,
        entry: ProgramEntry,
        base: int,
        inputs: list[Value],
        outputs: list[Value],
        scalars: tuple[Scalar, ...],
        starts: tuple[int, ...],
        queued_at_ns: int,
        amount: Amount | None = None,
    ) -> None:
        self.session = session
        self.entry = entry
        self.base = base
        self.amount = entry.amount if amount is None else amount  # the credit that it takes
        self.host_bytes = 0  # that it was counted with
        self.inputs = inputs
        self.iterations: Iterations | None = None  # if the segment repeats
        self.outputs = outputs  # one for each live result, in order; in a loop, further values follow
        self.scalars = scalars  # of the first iteration, as the starts
        self.starts = starts
        self.failed_ops: frozenset[int] = frozenset()  # that do not run, because of a failure
        self.waits_for = 0  # number of inputs that are not yet issued
        self.queued_at_ns = queued_at_ns
        self.waits_since_ns = queued_at_ns  # later than that if it is a loop, once its first slice has been ordered

    @property
    def count(self) -> int:
        """The number of its iterations."""
        return 1 if self.iterations is None else self.iterations.count

    @property
    def has_begun(self) -> bool:
        """Tells whether some iterations of this row have been submitted, and others have not."""
        return self.iterations is not None and self.iterations.begun > 0

    def results(self) -> Iterable[tuple[Value, int]]:
        """Returns the last value of each result and all others that the client may hold, each with its iteration."""
        return zip(self.outputs, repeat(0)) if self.iterations is None else self.iterations.results()

    def at(self, iteration: int) -> Row:
        """Returns one iteration of this row, as a row that is no loop."""
        loop = self.iterations
        if loop is None:
            return self
        inputs, outputs = loop.inputs_of(self.inputs, iteration), loop.outputs_of(iteration)
        scalars = in_iteration(self.scalars, loop.scalars.items(), iteration)
        starts = in_iteration(self.starts, loop.starts.items(), iteration)
        return Row(self.session, self.entry, self.base, inputs, outputs, scalars, starts, self.queued_at_ns)


class PendingFetch:
    """A fetch that has not been answered."""

    __slots__ = ("asked_at_ns", "fetch", "is_abandoned", "ordered_at_ns", "session", "value")

    def __init__(self, session: Session, fetch: int, value: Value, asked_at_ns: int = 0) -> None:
        self.session = session
        self.fetch = fetch
        self.value = value
        self.is_abandoned = False
        self.asked_at_ns = asked_at_ns  # when its entry came
        self.ordered_at_ns = 0  # when the device was told to bring the value to the host

    @property
    def is_unwanted(self) -> bool:
        """Tells whether nobody waits for the value any more."""
        return self.is_abandoned or self.session.state is SessionState.CLOSED


class SessionState(Enum):
    OPEN = "open"
    DETACHED = "detached"  # the stream broke; the session waits to be resumed
    CLOSED = "closed"


class SessionEvent(Enum):
    DISCONNECT = "disconnect"
    RESUME = "resume"
    END = "end"  # goodbye, a protocol failure, or the end of the grace period


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
    """All state of one session. The engine thread owns it."""

    session_id: bytes
    tenant: str
    client: str
    peer: str
    credit: Amount
    answers: Answers
    state: SessionState = SessionState.OPEN
    name: str = ""  # what its user calls it
    labels: Mapping[str, str] = field(default_factory=dict)
    epoch: int = 1
    applied_frame: int = 0
    stream_began_at_frame: int = 0
    programs: dict[int, ProgramEntry] = field(default_factory=dict)
    values: SaltedTable[Value] = field(default_factory=SaltedTable)
    packed: PackedValues = field(default_factory=PackedValues)  # values that nobody has touched lately
    failed: FailedHandles = field(default_factory=FailedHandles)  # results that will never exist
    large: SaltedTable[Value] = field(default_factory=SaltedTable)  # values of more than INLINE_BYTES
    fetches: SaltedTable[PendingFetch] = field(default_factory=SaltedTable)
    rejected_programs: dict[int, tuple[Failure, Claim]] = field(default_factory=dict)
    rejected_bytes: int = 0  # host memory of these
    queue: deque[Row] = field(default_factory=deque)  # rows whose inputs are all issued or failed, in order
    held_back: set[Row] = field(default_factory=set)  # rows that wait for an upload, or for the results of such rows
    cancelled: deque[Row] = field(default_factory=deque)  # rows that are being given up, some in each step
    admitted: Amount = NO_WORK
    completed: Amount = NO_WORK
    has_used_up_credit: bool = False
    credit_used_up: int = 0  # how often a segment or upload used up the credit
    live_bytes: int = 0
    tenant_bytes: TenantBytes = field(default_factory=TenantBytes)  # shared by the sessions of its tenant
    usage: TenantUsage = field(default_factory=TenantUsage)  # likewise
    rows_bytes: int = 0  # host memory of its rows that are not completed
    host_bytes: int = 0  # that it held when it was counted last, and how many values
    counted_values: int = 0
    device_ns: int = 0  # device time that its rows have used
    loop_ns: int = 0  # time of the engine thread that its frames have used
    # Fetches of ready values that the device has not been told to read.
    reads: SaltedTable[PendingFetch] = field(default_factory=SaltedTable)
    writes: int = 0  # number of uploads that the device has been told to write and has not written
    hidden_values: int = 0  # how many values without a handle of the client it has had
    uploading_bytes: int = 0  # host memory of uploads that are arriving or are not yet written
    heard_at_ns: int = 0
    opened_at_ns: int = 0
    waiting_ns: int = 0  # time in which fetches of it were not answered, but for those that are not yet
    waits_since_ns: int = 0  # when the first of these came
    dismissal: CaseError | None = None  # the reason for which its stream is to end it
    profile: Profile | None = None  # of its rows, while its client asks for that
    ops_total: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    @property
    def shown_id(self) -> str:
        """The part of its id that people see."""
        return shown_id(self.session_id)

    @property
    def in_flight(self) -> Amount:
        return self.admitted.minus(self.completed)

    @property
    def values_held(self) -> int:
        """The number of its values."""
        return len(self.values) + self.packed.count

    def knows(self, handle: int) -> bool:
        """Returns whether a handle names a value, or a result that has failed."""
        return handle in self.values or handle in self.packed or handle in self.failed

    def next_hidden_handle(self) -> int:
        """Returns a new handle for a value that the client cannot name."""
        self.hidden_values += 1
        return -self.hidden_values

    @property
    def may_go_on(self) -> bool:
        """Tells whether more entries may be applied now. If not, the entries wait until some uploads are written."""
        return self.writes < MOST_WRITES

    def on(self, event: SessionEvent) -> None:
        """Moves to the next state. Raises CaseError, and changes nothing, if this state does not allow the event."""
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            raise CaseError("out_of_turn", f"{event.value} in a session that is {self.state.value}")
        self.state = following

    def resume(self, acknowledged: int) -> None:
        """Gives the session to a new stream. Answers that the client has not acknowledged are queued again."""
        self.answers.acknowledge(acknowledged)
        self.on(SessionEvent.RESUME)
        self.epoch += 1
        self.stream_began_at_frame = self.applied_frame
        self.answers.owe_again()

    @property
    def has_sent(self) -> bool:
        """Whether the client has sent a frame over its last stream, after its hello."""
        return self.applied_frame > self.stream_began_at_frame

    def accept(self, number: int) -> bool:
        """Returns whether frame `number` is to be applied now; False if it was applied before.

        Raises CaseError on a gap.
        """
        if self.state is not SessionState.OPEN:
            raise CaseError("out_of_turn", f"frame {number} in a session that is {self.state.value}")
        if number <= self.applied_frame:
            return False
        if number != self.applied_frame + 1:
            raise CaseError("frame_gap", f"frame {number} follows frame {self.applied_frame}")
        self.applied_frame = number
        return True

    def begin_waiting(self, now_ns: int) -> None:
        """Notes that a fetch has come, before it is among the `fetches`."""
        if not self.fetches:
            self.waits_since_ns = now_ns

    def end_waiting(self, now_ns: int) -> None:
        """Notes that a fetch was answered. Its client waits no more if it was the last one."""
        if not self.fetches:
            self.waiting_ns += max(now_ns - self.waits_since_ns, 0)

    def answer(self, fetch: int, data: memoryview) -> None:
        """Queues the value of a fetch as its answer."""
        self.fetches.pop(fetch, None)
        self.answers.add(fetch, data)

    def answer_failure(self, fetch: int, failure: Failure) -> None:
        """Queues a failure as the answer to a fetch."""
        self.fetches.pop(fetch, None)
        self.answers.add_failure(fetch, failure)

    def drop_read(self, fetch: int) -> None:
        """Drops a value that has come to the host after the client abandoned it."""
        self.fetches.pop(fetch, None)
        self.answers.drop_read(fetch)

    def forget_answers(self) -> None:
        """Drops all fetches and answers of a session that has ended, because nobody will take them."""
        self.fetches.clear()
        self.reads.clear()
        self.answers.forget_all()

    def take_credit(self, amount: Amount) -> None:
        """Counts a segment or upload as in flight. Raises CaseError if the client had no credit for it."""
        admitted, in_flight = self.admitted.plus(amount), amount
        if self.admitted != self.completed:
            in_flight = admitted.minus(self.completed)
            if not in_flight.fits(self.credit):
                raise CaseError("credit_overdrawn", _overdrawn(in_flight, self.credit))
        self.admitted = admitted
        if not _fits_another(in_flight, amount, self.credit):
            self.has_used_up_credit = True
            self.credit_used_up += 1

    def begin_row(self, row: Row) -> None:
        """Takes the credit for a row, and counts its memory. Raises as `take_credit` does."""
        self.take_credit(row.amount)
        row.host_bytes = row_bytes(row)
        self.rows_bytes += row.host_bytes

    def end_row(self, row: Row) -> None:
        """Returns the credit for a row that is completed or given up, and counts its memory no longer."""
        self.rows_bytes -= row.host_bytes
        self.complete(row.amount)

    def complete(self, amount: Amount) -> None:
        """Returns credit for work that the device has completed."""
        self.completed = self.completed.plus(amount)
        self.has_used_up_credit = False

    def owes_credit(self, returned: Amount) -> bool:
        """Returns whether the client, which knows that `returned` is completed, is to be told of more now.

        It is once a quarter of some kind of credit has come back, or nothing is in flight: each message takes as long
        as many a segment. An answer tells of all that is completed anyway.
        """
        completed = self.completed
        if completed == returned:
            return False
        if completed == self.admitted:
            return True
        return any(
            4 * (now - before) >= most for now, before, most in zip(completed, returned, self.credit, strict=True)
        )


def _fits_another(in_flight: Amount, last: Amount, credit: Amount) -> bool:
    """Returns whether the credit leaves room for another `last`. Makes no Amount, because each segment asks."""
    ops, bytes_, segments = in_flight
    most_ops, most_bytes, most_segments = credit
    return ops + last[0] <= most_ops and bytes_ + last[1] <= most_bytes and segments + last[2] <= most_segments


def _overdrawn(wanted: Amount, credit: Amount) -> str:
    """Names each kind of credit that does not suffice, with the setting that limits it."""
    kinds = zip(Amount._fields, wanted, credit, strict=True)
    short = [f"{sum_} {kind} in flight; limits.credit_{kind} = {most}" for kind, sum_, most in kinds if sum_ > most]
    return ", ".join(short)
