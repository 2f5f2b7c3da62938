"""Bounds the submissions that are with the device, and says which lane a row may take. Pure.

Lanes keep those who are quick from waiting for those who are not: the device thread takes the submissions of a lane in
turn, and those of the fast lane overtake all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.coalescer import Batch
from fusewire_server.sessions.session import Row, Session

if TYPE_CHECKING:
    from fusewire_kernels.devices.base import LoadedPlan

# Submissions of a lane that are told to the device and not yet completed: one that runs and one behind it, so that it
# never idles.
MOST_OUTSTANDING = 2


class Lane(Enum):
    """Where a submission stands."""

    FAST = "fast"
    SLOW = "slow"  # rows that run op by op or take long, and rows of sessions that have such rows under way
    LASTING = "lasting"  # were slow, and take so long that others of the slow lane go on beside them

    __hash__ = object.__hash__  # Enum's is of the name, in Python, and each frame looks into tables of lanes


class Told(NamedTuple):
    """A batch that the device has been told to run, with the plan it runs by (None at tier 0)."""

    batch: Batch
    loaded: LoadedPlan | None
    lane: Lane


class Lanes:
    """Owned by the loop thread. A row whose plan takes more than `most_whole_ns` is slow."""

    def __init__(self, most_whole_ns: int) -> None:
        self.most_whole_ns = most_whole_ns
        self._submissions = 0
        self._outstanding: dict[int, Told] = {}
        self._told: Counter[Lane] = Counter()  # how many of them are of each lane
        self._slow: Counter[Session] = Counter()  # rows of them that are in another lane than the fast one, by session
        self._last_slow: dict[Session, int] = {}  # which of the submissions of the slow lane a session waits for
        # Rows of them in the lasting lane and large values that are read: behind these their next rows would only wait.
        self._lasting: Counter[Session] = Counter()

    @property
    def has_room(self) -> bool:
        """Whether the device may be told more."""
        return self._told[Lane.FAST] < MOST_OUTSTANDING

    def open_to(self, row: Row) -> Hashable | None:
        """Where a row would go if it went now; None if it cannot.

        In the slow lane it goes with rows that wait for the same submission: for any other it would wait for nothing.
        """
        if row.session in self._lasting or (row.entry.loaded is None and row.entry.missing_calls):
            return None
        lane = self._lane(row)
        return self._last_slow.get(row.session, lane) if self._told[lane] < MOST_OUTSTANDING else None

    def is_long(self, entry: ProgramEntry, loaded: LoadedPlan) -> bool:
        """Whether others are not to wait for the end of a row that runs by this plan."""
        return (entry.row_ns or loaded.plan.cost.estimate_ns) > self.most_whole_ns

    def tell(self, batch: Batch, loaded: LoadedPlan | None) -> int:
        """The device is told to run a batch; the number of that submission."""
        self._submissions += 1
        told = Told(batch, loaded, self._lane(batch.rows[0]))
        self._outstanding[self._submissions] = told
        self._count(told, 1)
        if told.lane is Lane.SLOW:
            self._last_slow.update({row.session: self._submissions for row in batch.rows})
        return self._submissions

    def pass_by(self, number: int) -> None:
        """A submission takes long: its place in the slow lane is free for others."""
        told = self._outstanding[number]
        self._told[told.lane] -= 1
        self._outstanding[number] = told._replace(lane=Lane.LASTING)
        self._told[Lane.LASTING] += 1
        self._lasting.update([row.session for row in told.batch.rows])

    def complete(self, number: int) -> Told:
        """The device has done with a submission."""
        told = self._outstanding.pop(number)
        self._count(told, -1)
        sessions = [row.session for row in told.batch.rows]
        if told.lane is not Lane.FAST:
            for session in [one for one in sessions if self._last_slow.get(one) == number]:
                del self._last_slow[session]
        if told.lane is Lane.LASTING:
            self._lasting -= Counter(sessions)
        return told

    def begin_large_read(self, session: Session) -> None:
        """The device is told to bring a large value to the host."""
        self._lasting[session] += 1

    def end_large_read(self, session: Session) -> None:
        self._lasting -= Counter([session])

    def _lane(self, row: Row) -> Lane:
        loaded = row.entry.loaded
        is_slow = loaded is None or row.session in self._slow or self.is_long(row.entry, loaded)
        return Lane.SLOW if is_slow else Lane.FAST

    def _count(self, told: Told, change: int) -> None:
        """A submission has been told to the device (+1), or has been completed (−1)."""
        self._told[told.lane] += change
        if told.lane is Lane.FAST:
            return
        for row in told.batch.rows:
            self._slow[row.session] += change
            if not self._slow[row.session]:
                del self._slow[row.session]
