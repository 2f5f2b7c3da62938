"""Splits device-thread time evenly between unfinished orders and the orders that overtake them. Pure.

The unfinished orders and the orders that overtake them get about the same time while there are both: each side gets as
much as the other side has just used, up to `MOST_OWED_NS`. Only used time counts; time in which a thread waited for a
processor or for the interpreter lock is charged to neither side.
"""

from __future__ import annotations

from enum import Enum

ORDER_SLICE_NS = 300_000
MOST_OWED_NS = 5_000_000  # the most time that each side gets for the time that the other side has used
# The pause between two slices. During the pause another thread gets the interpreter lock. Every launch also releases
# the lock while ops run, but so briefly that a thread that waits for the lock wakes up too late.
PAUSE_S = 0.00005
# The pause between two looks for orders, for the same reason. The operating system makes the pause a little longer.
LOOK_S = 0.000_001


class Progress(Enum):
    """Tells how a slice ended."""

    ENDED = "ended"
    GOES_ON = "goes on"
    WAITS = "waits"  # for other runs, or for the device
    LACKS_KERNELS = "lacks kernels"  # and goes on once they are loaded or refused


class Waiting(Enum):
    """Tells which kind of order waits while there are unfinished orders."""

    NOTHING = "nothing"
    BRIEF = "brief"  # an order that takes very little time
    ORDER = "order"


class TimeShares:
    """Decides when unfinished orders run, and for how long. The device thread owns this object and passes the time."""

    def __init__(self) -> None:
        self._others_ns = 0  # time that overtaking orders have used since the last turn of the unfinished orders
        self._due_ns = 0  # when the unfinished orders run again even if other orders wait
        self._until_ns = 0  # the end of the current turn of the unfinished orders

    def begin(self, *, is_first: bool) -> None:
        """Notes that an order starts to run in slices. Its first slice runs at once, even if other orders wait."""
        if is_first:
            self._others_ns = 0
        self._due_ns = 0

    def overtaken(self, used_ns: int) -> None:
        """Adds the time that an overtaking order has used."""
        self._others_ns += used_ns

    def is_turn(self, now_ns: int, waiting: Waiting) -> bool:
        """Returns whether the unfinished orders run now. A brief order may delay these by up to one slice."""
        if waiting is Waiting.NOTHING:
            self._others_ns = self._due_ns = 0
            return True
        return now_ns >= self._due_ns + (ORDER_SLICE_NS if waiting is Waiting.BRIEF else 0)

    def begin_turn(self, now_ns: int) -> None:
        """Starts a turn of the unfinished orders.

        The turn lasts as long as the time that other orders have used since the last turn, up to `MOST_OWED_NS`.
        """
        self._until_ns = now_ns + min(self._others_ns, MOST_OWED_NS)

    def goes_on(self, slice_began_ns: int, now_ns: int, progress: Progress) -> bool:
        """Notes that a slice has ended. Returns whether another slice follows in this turn.

        If none follows, other orders get as much time as that slice took, but at most `MOST_OWED_NS` and at least
        `ORDER_SLICE_NS`. If the slice ended because its order waits, unfinished orders may run again at once.
        """
        self._others_ns = 0
        waits = progress in (Progress.WAITS, Progress.LACKS_KERNELS)
        self._due_ns = 0 if waits else now_ns + max(min(now_ns - slice_began_ns, MOST_OWED_NS), ORDER_SLICE_NS)
        return not waits and now_ns < self._until_ns
