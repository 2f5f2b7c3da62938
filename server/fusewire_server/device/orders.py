"""Defines the orders that the loop gives the device thread, and the reports that come back. Plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fusewire_kernels.devices.base import LoadedPlan, Staged
from fusewire_kernels.plan.plan import Plan
from fusewire_protos.credit import Amount
from fusewire_server.device import large_read
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Fetching, Row, Session, Value


class Submission(NamedTuple):
    """Rows of one program that go to the device together.

    `loaded` is the plan that the rows run by, None at tier 0; a plan that is loaded later does not change that.
    `donated[i]` are the (input, live position) pairs of row i whose input hands its block on to that live result.
    `released` are values that die with this submission. `reads` are fetches of results that the device thread copies to
    the host when the rows have run.
    """

    entry: ProgramEntry
    loaded: LoadedPlan | None
    rows: tuple[Row, ...]
    donated: tuple[tuple[tuple[int, int], ...], ...]
    released: tuple[Value, ...]
    reads: tuple[Fetching, ...] = ()


class Run(NamedTuple):
    """Run the rows of a submission. `is_long`: its plan takes so long that other orders should not wait for its end."""

    number: int
    submission: Submission
    is_long: bool = False


class Write(NamedTuple):
    """Fill a value with bytes from the host. Its `credit` returns to the session when that is done."""

    session: Session
    value: Value
    data: bytes | Staged
    credit: Amount


class Read(NamedTuple):
    """Bring a value to the host."""

    fetching: Fetching


class Release(NamedTuple):
    """Give back the memory of dead values. `sessions` are the sessions of these values."""

    sessions: frozenset[Session]
    values: tuple[Value, ...]


class Load(NamedTuple):
    """Load a plan. `key` is the program entry or the one-op call that gets the plan."""

    key: object
    plan: Plan
    binaries: tuple[str, ...]


Order = Run | Write | Read | Release | Load


class FailedRow(NamedTuple):
    """A row that failed. `case` is a name from the error table."""

    row: Row
    case: str
    text: str


class Ran(NamedTuple):
    """A submission has been completed, except for the failed rows. `reads` are the outcomes of the reads it carried."""

    number: int
    failed: tuple[FailedRow, ...]
    device_ns: int
    reads: tuple[Brought | Missing, ...] = ()


class Lasts(NamedTuple):
    """A submission in slices takes long or waits for others, so that later submissions go on beside it."""

    number: int


class Wrote(NamedTuple):
    """A value has been written, or could not be for lack of memory; `refusal` then tells why."""

    write: Write
    refusal: str | None


class Missing(NamedTuple):
    """A fetched value does not come: its producer found no memory, no client wants it now, or `refusal` tells why."""

    fetching: Fetching
    device_ns: int = 0
    refusal: str | None = None  # tells why the host has no memory for it


class Brought(NamedTuple):
    """A fetched value is on the host. `device_ns` is the device time of the copy, for a large value only."""

    fetching: Fetching
    data: memoryview
    device_ns: int = 0


class Loaded(NamedTuple):
    key: object
    loaded: LoadedPlan


class Unloadable(NamedTuple):
    """The device could not load a plan."""

    key: object
    text: str
    case: str = "server_fault"


class Broken(NamedTuple):
    """The device is unusable; the process must end."""

    error: BaseException


Report = Ran | Lasts | Wrote | Missing | Brought | Loaded | Unloadable | Broken


def no_room_on_host(size_bytes: int) -> str:
    """Returns the refusal of a fetched or uploaded value for which the host has no memory, whatever the device has."""
    return f"the host has no memory for a value of {size_bytes} bytes"


def sessions_of(order: Order) -> frozenset[Session]:
    """Returns the sessions whose values an order reads, writes, frees or overwrites."""
    match order:
        case Run(submission=submission):
            return frozenset([row.session for row in submission.rows])
        case Write(session):
            return frozenset([session])
        case Read(fetching):
            return frozenset([fetching.session])
        case Release(sessions):
            return sessions
        case Load():
            return frozenset()


def values_needed(order: Order) -> Iterator[Value]:
    """Yields the values that an order reads, or to which it writes results."""
    match order:
        case Run(submission=submission):
            for row in submission.rows:
                yield from row.inputs
                yield from row.outputs
        case Read(fetching):
            yield fetching.value


def goes_in_slices(order: Order) -> bool:
    """Returns whether an order is done in slices, so that other orders may overtake it. Any thread."""
    if isinstance(order, Run):
        return order.is_long or order.submission.loaded is None
    return isinstance(order, Read) and is_large(order.fetching)


def is_large(fetching: Fetching) -> bool:
    """Returns whether the value is copied to the host in pieces."""
    return fetching.value.size_bytes > large_read.LARGE_BYTES


def is_brief(order: Order) -> bool:
    """Returns whether an order takes very little time in any case, so that unfinished orders may let it go first."""
    match order:
        case Read():
            return not goes_in_slices(order)
        case Write(data=data):
            return isinstance(data, bytes)
        case Release():
            return True
    return False
