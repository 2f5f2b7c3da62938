"""The plain data that the server's parts pass to one another: values, rows of work, fetches, failures.

Everything here is owned by the loop thread, but for `Value.block`: the device thread writes it, and the loop thread
reads it only while the device thread has done all that it was told.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Self

from fusewire_protos.credit import Amount
from fusewire_protos.errors import Case, CaseError, bounded_text
from fusewire_protos.frames import Scalar
from fusewire_protos.shapes import Spec

if TYPE_CHECKING:
    from fusewire_kernels.devices.base import Block, LoadedPlan
    from fusewire_protos.program import Program
    from fusewire_server.programs import ProgramEntry
    from fusewire_server.session import Session


class _FailureFields(NamedTuple):
    """The fields of a failure."""

    case: Case
    text: str
    base: int
    op_index: int


class Failure(_FailureFields):
    """Why a value will never exist: what the client is told when it asks. `base` and `op_index` say where.

    The text is cut at a bound: it is kept as long as anything that failed with it, and told to each who asks.
    """

    __slots__ = ()

    def __new__(cls, case: Case, text: str, base: int, op_index: int) -> Self:
        return super().__new__(cls, case, bounded_text(text), base, op_index)

    @classmethod
    def of(cls, error: CaseError, base: int = 0, op_index: int = 0) -> Failure:
        return cls(error.case, error.text, base, op_index)

    def of_result(self, program: Program, base: int, op_index: int) -> Failure:
        """What is told of one result of the segment with that base; a failure that began elsewhere stays as it is."""
        if self.base != base:
            return self
        if self.text.startswith("op "):  # it names the op that is at fault
            return self._replace(op_index=op_index)
        text = f"op {op_index} {program.signatures[op_index].op.name}: {self.text}"
        return Failure(self.case, text, base, op_index)


NO_WORK = Amount()


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
        # The device thread's; while that has nothing to do the loop may act in its place.
        self.block: Block | None = None

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


class Answer(NamedTuple):
    """What a fetch came to: the value's bytes, how many of them travel beside the stream, or why there are none."""

    fetch: int
    data: memoryview | None
    failure: Failure | None
    beside_bytes: int = 0  # of a value that is too large for a frame


@dataclass(slots=True)
class Beside:
    """A value on the host that travels beside the stream: kept for the client, and for the calls that carry it."""

    data: memoryview
    is_wanted: bool = True  # the client has not taken it yet, nor abandoned it
    calls: int = 0  # downloads that carry it now


class Submission(NamedTuple):
    """What goes to the device at once: rows of one program.

    `loaded` is the plan they were chosen for, None at tier 0: a plan that is loaded meanwhile is not theirs.
    `donated[i]` are the (input, live position) pairs whose buffer row i hands on. `released` are values that die
    with this submission.
    """

    entry: ProgramEntry
    loaded: LoadedPlan | None
    rows: tuple[Row, ...]
    donated: tuple[tuple[tuple[int, int], ...], ...]
    released: tuple[Value, ...]
