"""Bounds the submissions that are on the device, and chooses the lane of each row. Pure.

Lanes keep fast submissions from waiting for slow ones: the device thread takes the submissions of one lane in turn, and
submissions of the fast lane overtake all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from fusewire_server.scheduling.coalescer import Batch
from fusewire_server.sessions.session import Row, Session

if TYPE_CHECKING:
    from fusewire_kernels.devices.base import LoadedPlan

# The most submissions of a lane that the device has been told to run and has not completed: one that runs, and one that
# is next, so that the device never idles.
MOST_OUTSTANDING = 2


class Lane(Enum):
    """The queue that a submission takes on its way to the device."""

    FAST = "fast"
    SLOW = "slow"  # rows that run op by op, and other rows of sessions that have such rows on the device
    # Submissions that left the slow lane because they take very long. Later slow submissions take turns with them.
    LASTING = "lasting"

    __hash__ = object.__hash__  # Enum hashes the name in Python code, and each frame looks into tables keyed by lanes


class OutstandingBatch(NamedTuple):
    """A batch that the device was told to run at the time `at_ns`, with its plan (None at tier 0)."""

    batch: Batch
    loaded: LoadedPlan | None
    lane: Lane
    at_ns: int


class Lanes:
    """The submissions of each lane. The engine thread owns this object."""

    def __init__(self) -> None:
        self._submissions = 0
        self._outstanding: dict[int, OutstandingBatch] = {}
        self._submitted: Counter[Lane] = Counter()  # lane -> how many outstanding submissions it has
        self._slow: Counter[Session] = Counter()  # session -> how many outstanding rows it has outside the fast lane
        self._last_slow: dict[Session, int] = {}  # session -> number of the last slow submission that has its row
        # Session -> how many rows in the lasting lane and reads of large values it has. No further rows of such a
        # session are sent, because they would only wait until those rows and reads have ended.
        self._lasting: Counter[Session] = Counter()

    @property
    def has_room(self) -> bool:
        """Whether the fast lane takes one more submission."""
        return self._submitted[Lane.FAST] < MOST_OUTSTANDING

    def open_to(self, row: Row) -> Hashable | None:
        """Returns a key if a row can be sent now, else None. Only rows with equal keys may share a submission.

        The key is the row's lane, or the number of the slow submission that the row must wait for. Rows that wait for
        different submissions do not share one, because the row that waits longest would delay the others.
        """
        if row.session in self._lasting:
            return None
        lane = self._lane(row)
        return self._last_slow.get(row.session, lane) if self._submitted[lane] < MOST_OUTSTANDING else None

    @property
    def outstanding(self) -> int:
        """The number of submissions that the device has been told to run and has not completed."""
        return len(self._outstanding)

    def tell(self, batch: Batch, loaded: LoadedPlan | None, now_ns: int = 0) -> int:
        """Records that the device is told to run a batch. Returns the number of the submission."""
        self._submissions += 1
        outstanding = OutstandingBatch(batch, loaded, self._lane(next(iter(batch.spans))), now_ns)
        self._outstanding[self._submissions] = outstanding
        self._count(outstanding, 1)
        if outstanding.lane is Lane.SLOW:
            self._last_slow.update({row.session: self._submissions for row in batch.spans})
        return self._submissions

    def mark_lasting(self, number: int) -> None:
        """Records that a submission takes very long. Its place in the slow lane becomes free for other submissions."""
        outstanding = self._outstanding[number]
        self._submitted[outstanding.lane] -= 1
        self._outstanding[number] = outstanding._replace(lane=Lane.LASTING)
        self._submitted[Lane.LASTING] += 1
        self._lasting.update([row.session for row in outstanding.batch.spans])

    def complete(self, number: int) -> OutstandingBatch:
        """Records that the device has completed a submission, and returns that submission."""
        outstanding = self._outstanding.pop(number)
        self._count(outstanding, -1)
        sessions = [row.session for row in outstanding.batch.spans]
        if outstanding.lane is not Lane.FAST:
            for session in [one for one in sessions if self._last_slow.get(one) == number]:
                del self._last_slow[session]
        if outstanding.lane is Lane.LASTING:
            self._lasting -= Counter(sessions)
        return outstanding

    def begin_large_read(self, session: Session) -> None:
        """Records that the device is told to bring a large value to the host."""
        self._lasting[session] += 1

    def end_large_read(self, session: Session) -> None:
        self._lasting -= Counter([session])

    def _lane(self, row: Row) -> Lane:
        return Lane.SLOW if row.entry.loaded is None or row.session in self._slow else Lane.FAST

    def _count(self, outstanding: OutstandingBatch, change: int) -> None:
        """Counts a submission. `change` is 1 if the device is told to run it, and −1 if the device has completed it."""
        self._submitted[outstanding.lane] += change
        if outstanding.lane is Lane.FAST:
            return
        for row in outstanding.batch.spans:
            self._slow[row.session] += change
            if not self._slow[row.session]:
                del self._slow[row.session]
