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
    """What goes to the device at once: rows of one program.

    `loaded` is the plan they were chosen for, None at tier 0: a plan that is loaded meanwhile is not theirs.
    `donated[i]` are the (input, live position) pairs whose buffer row i hands on. `released` are values that die
    with this submission. `reads` are fetches of results that it brings to the host when it has run.
    """

    entry: ProgramEntry
    loaded: LoadedPlan | None
    rows: tuple[Row, ...]
    donated: tuple[tuple[tuple[int, int], ...], ...]
    released: tuple[Value, ...]
    reads: tuple[Fetching, ...] = ()


class Run(NamedTuple):
    """Run the rows of a submission. `is_long`: others are not to wait for the end of its plan."""

    number: int
    submission: Submission
    is_long: bool = False


class Write(NamedTuple):
    """Fill a value with bytes from the host; `credit` comes back to the session when that is done."""

    session: Session
    value: Value
    data: bytes | Staged
    credit: Amount


class Read(NamedTuple):
    """Bring a value to the host."""

    fetching: Fetching


class Release(NamedTuple):
    """Give back the memory of values that died, all of them values of these sessions."""

    sessions: frozenset[Session]
    values: tuple[Value, ...]


class Load(NamedTuple):
    """Load a plan; `key` is the program entry, or the one-op call, that it serves."""

    key: object
    plan: Plan
    binaries: tuple[str, ...]


Order = Run | Write | Read | Release | Load


class FailedRow(NamedTuple):
    """A row that came to nothing; `case` is the name of its case of the error table."""

    row: Row
    case: str
    text: str


class Ran(NamedTuple):
    """A submission has been completed, but for the rows that failed. `reads` is what became of those it carried."""

    number: int
    failed: tuple[FailedRow, ...]
    device_ns: int
    reads: tuple[Brought | Missing, ...] = ()


class Lasts(NamedTuple):
    """A submission in slices takes long, or waits for others: whatever is told meanwhile goes on beside it."""

    number: int


class Wrote(NamedTuple):
    """A value has been written, or could not be for want of memory (`refusal` says so)."""

    write: Write
    refusal: str | None


class Missing(NamedTuple):
    """A fetched value does not come: its producer found no memory, nobody wants it any more, or as `refusal` says."""

    fetching: Fetching
    device_ns: int = 0
    refusal: str | None = None  # why the host has no room for it


class Brought(NamedTuple):
    """A fetched value is on the host. `device_ns` is the time it took there, of a large one."""

    fetching: Fetching
    data: memoryview
    device_ns: int = 0


class Loaded(NamedTuple):
    key: object
    loaded: LoadedPlan


class Unloadable(NamedTuple):
    """A plan that the device does not take."""

    key: object
    text: str
    case: str = "server_fault"


class Broken(NamedTuple):
    """The device is beyond use; the process must end."""

    error: BaseException


Report = Ran | Lasts | Wrote | Missing | Brought | Loaded | Unloadable | Broken


def no_room_on_host(size_bytes: int) -> str:
    """Why a value that is fetched or uploaded does not come, whatever room the device has."""
    return f"the host has no room for a value of {size_bytes} bytes"


def sessions_of(order: Order) -> frozenset[Session]:
    """The sessions whose values an order reads, writes, frees or overwrites."""
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
    """The values that an order reads or has results written to."""
    match order:
        case Run(submission=submission):
            for row in submission.rows:
                yield from row.inputs
                yield from row.outputs
        case Read(fetching):
            yield fetching.value


def goes_in_slices(order: Order) -> bool:
    """Whether others may overtake it while it goes on. Any thread."""
    if isinstance(order, Run):
        return order.is_long or order.submission.loaded is None
    return isinstance(order, Read) and is_large(order.fetching)


def is_large(fetching: Fetching) -> bool:
    """Whether the value is brought to the host in pieces."""
    return fetching.value.size_bytes > large_read.LARGE_BYTES


def is_brief(order: Order) -> bool:
    """Whether it takes next to nothing, whatever there is to do for it: others may let it go before them."""
    match order:
        case Read():
            return not goes_in_slices(order)
        case Write(data=data):
            return isinstance(data, bytes)
        case Release():
            return True
    return False
