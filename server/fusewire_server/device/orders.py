"""Defines the orders that the event loop gives to the device thread, and the reports that come back. Plain data."""

from __future__ import annotations

from builtins import BaseException, memoryview  # noqa: A004 - mypyc looks for types of fields in the module
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fusewire_kernels.devices.base import LoadedPlan, Staged
from fusewire_kernels.plan.plan import Plan
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.credit import Amount
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import PendingFetch, Row, Session, Value

# The most launches, values and bytes of a short order.
SHORT_LAUNCHES = 16
SHORT_VALUES = 512
SHORT_BYTES = 32 << 10
LARGE_BYTES = 4 << 20  # the size in bytes above which a value is copied to the host in pieces


class Submission(NamedTuple):
    """Rows of one program that go to the device together.

    `loaded` is the plan of the rows, or None at tier 0. It stays None if a plan is loaded after the submission is made.
    `spans` holds the rows, each with the iterations of it that run. `donated[i]` holds pairs of (input, live position)
    for row i: the input gives its block to that live result. `released` holds the values that die with this submission.
    `reads` holds fetches of results: the device thread copies these results to the host when the rows have run.
    """

    entry: ProgramEntry
    loaded: LoadedPlan | None
    spans: Mapping[Row, range]
    donated: tuple[tuple[tuple[int, int], ...], ...]
    released: tuple[Value, ...]
    reads: tuple[PendingFetch, ...] = ()


class Run(NamedTuple):
    """Run the rows of a submission."""

    number: int
    submission: Submission


class Write(NamedTuple):
    """Fill a value with bytes from the host. When the value is filled, `credit` returns to the session."""

    session: Session
    value: Value
    data: bytes | Staged
    credit: Amount


class Read(NamedTuple):
    """Bring a value to the host."""

    pending: PendingFetch


class Release(NamedTuple):
    """Give back the memory of dead values. `sessions` are the sessions of these values."""

    sessions: frozenset[Session]
    values: tuple[Value, ...]


class Load(NamedTuple):
    """Load a plan. `key` is the program entry or the one-op call that gets the plan."""

    key: ProgramEntry | OneOpCall
    plan: Plan
    binaries: tuple[str, ...]


class NoKernel(NamedTuple):
    """A one-op call will never have kernels, because of `refusal`.

    If `refusal` is empty, a session that waited for these kernels has ended, and its rows are given up.
    """

    call: OneOpCall
    refusal: str


Order = Run | Write | Read | Release | Load | NoKernel


class FailedRow(NamedTuple):
    """A row that failed. `case` is a name from the error table.

    If `ops` are given, only these ops of its program failed, and so did the results that depend on them.
    """

    row: Row
    case: str
    text: str
    ops: tuple[int, ...] = ()


class Ran(NamedTuple):
    """A submission has been completed, except for the failed rows. `reads` are the outcomes of its reads."""

    number: int
    failed: tuple[FailedRow, ...]
    device_ns: int
    reads: tuple[Brought | Missing, ...] = ()


class RunIsLong(NamedTuple):
    """A submission in slices takes long or waits for something, so later submissions do not wait for its end."""

    number: int


class Lacks(NamedTuple):
    """A submission of these sessions waits for the kernels of one-op calls."""

    calls: frozenset[OneOpCall]
    sessions: frozenset[Session]


class Wrote(NamedTuple):
    """A value has been written; or memory was lacking, and then `refusal` says why."""

    write: Write
    refusal: str | None


class Missing(NamedTuple):
    """A fetched value does not come.

    Either the row that computes the value found no memory, or no client wants the value now, or `refusal` says why.
    """

    pending: PendingFetch
    device_ns: int = 0
    refusal: str | None = None  # says why the host has no memory for the value


class Brought(NamedTuple):
    """A fetched value is on the host. `device_ns` is the device time of a large value's copy, and otherwise 0."""

    pending: PendingFetch
    data: memoryview
    device_ns: int = 0


class Loaded(NamedTuple):
    key: ProgramEntry | OneOpCall
    loaded: LoadedPlan


class Unloadable(NamedTuple):
    """The device could not load a plan."""

    key: ProgramEntry | OneOpCall
    text: str


class Broken(NamedTuple):
    """The device is unusable; the process must end."""

    error: BaseException


Report = Ran | RunIsLong | Lacks | Wrote | Missing | Brought | Loaded | Unloadable | Broken


def no_room_on_host(size_bytes: int) -> str:
    """Returns the refusal of a fetched or uploaded value: the host has no memory for it, even if the device has."""
    return f"the host has no memory for a value of {size_bytes} bytes"


def sessions_of(order: Order) -> frozenset[Session]:
    """Returns the sessions whose values an order reads, writes, frees or overwrites."""
    match order:
        case Run(submission=submission):
            return frozenset([row.session for row in submission.spans])
        case Write(session):
            return frozenset([session])
        case Read(pending):
            return frozenset([pending.session])
        case Release(sessions):
            return sessions
        case Load() | NoKernel():
            return frozenset()


def values_needed(order: Order) -> Iterator[Value]:
    """Yields the values that an order reads, and the values that get the order's results."""
    match order:
        case Run(submission=submission):
            for row in submission.spans:
                yield from row.inputs
                yield from row.outputs
        case Read(pending):
            yield pending.value


def goes_in_slices(order: Order) -> bool:
    """Returns whether an order is done in slices, so that other orders may overtake it. Runs on any thread."""
    if isinstance(order, Run):
        return order.submission.loaded is None
    return isinstance(order, Read) and is_large(order.pending)


def is_large(pending: PendingFetch) -> bool:
    """Returns whether the value is copied to the host in pieces."""
    return pending.value.size_bytes > LARGE_BYTES


def is_short(order: Order) -> bool:
    """Returns whether giving the work of an order to a GPU takes less than waking another thread for it."""
    match order:
        case Run(submission=submission):
            loaded, program = submission.loaded, submission.entry.program
            if loaded is None or len(loaded.plan.launches) > SHORT_LAUNCHES:
                return False
            count = len(submission.spans) * (len(program.live) + len(program.inputs))
            return count <= SHORT_VALUES and max(map(len, submission.spans.values())) == 1
        case Read(pending):
            return pending.value.size_bytes <= SHORT_BYTES
        case Write(data=data):
            return isinstance(data, bytes) and len(data) <= SHORT_BYTES
        case Release(values=values):
            return len(values) <= SHORT_VALUES
    return False


def is_brief(order: Order) -> bool:
    """Returns whether an order always takes very little time. Such an order may go before unfinished orders."""
    match order:
        case Read():
            return not goes_in_slices(order)
        case Write(data=data):
            return isinstance(data, bytes)
        case Release():
            return True
    return False
