"""Splits device-thread time evenly between unfinished orders and those that overtake them. Pure.

A row that runs op by op takes time in proportion to the ops of its program. The plan of a long row, and the read of a
large value, take time in proportion to their data. The device thread works on all of these in slices and attends to
other orders between slices. Several such orders may be unfinished at once; they take turns. An order overtakes all
unfinished orders if it concerns none of their sessions and no session of an order that was held up before it. Every
other order waits until the earlier orders that concern its sessions have ended. So a session's orders keep their order.

Time (`TimeShares`). While there are both, the unfinished orders and the orders that overtake them get about the same
time: each side gets as much as the other side has just used, up to `MOST_OWED_NS`. Only used time counts; time in which
a thread waited for a processor or for the interpreter lock is charged to neither side.

Why no client can see the difference. A value belongs to one session, and an order reads, writes, frees or overwrites
only values of the sessions that it concerns. So two orders that concern different sessions have no value in common.
Either may come first, or their slices may alternate: the result is as if the loop had given the overtaking order first.
In particular

- no overtaking order frees or donates a value that an unfinished order reads or will write, because an order that frees
  or donates it concerns the same session;
- a block that an overtaking order releases was a value of another session, which no held-up order will use;
- a block that is newly allocated had been released before; an unfinished order releases before its end only results of
  rows that have failed, which the order does not touch again and no client can read;
- an arena keeps no data from one launch of a whole plan to the next, and the device runs launches in the order in which
  they are issued; a plan that runs in slices has an arena that no other plan uses before its row has ended.

A session that has ended sends nothing more, and nobody reads its values. So an unfinished order that concerns only
ended sessions may be given up at any slice: nobody would have read the values that it has not written.

Memory. A run at tier 0 reserves memory for its intermediate values. Other orders may need that memory, and they must
neither wait for the end of the run, which may be hours away, nor be refused memory because of it. So the run gives its
reservation back and starts its row again when there is memory. That changes no result, because a row at tier 0 writes
its results only after all its ops have run, and until then its inputs are unchanged. (A plan writes results while it
runs. It reserves nothing and never starts again; its results get memory only when it first has the arena.) An
allocation of a value may take the reservation of any run. A run may take the reservations of larger runs only, and
waits for the others. A release that is held up may give back early each value that no unfinished or held-up order
needs, because no later order can name a value that has died.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Generic, TypeVar

SLICE_NS = 300_000
# Longer, because other threads run during it; the thread waits for the interpreter lock at its end.
FOREIGN_SLICE_NS = 1_000_000
MOST_OWED_NS = 5_000_000  # the most time that each side gets for the time that the other side has used
# The pause between slices that are not foreign calls. It lets a thread that waits for the interpreter lock get it:
# every launch releases the lock while ops run, but too briefly for the other thread to wake up in time.
PAUSE_S = 0.00005
LOOK_S = 0.000_001  # the pause between two looks for orders, for the same reason; the system makes it a little longer

Order = TypeVar("Order")
Run = TypeVar("Run")


class Progress(Enum):
    """Tells how a slice ended."""

    ENDED = "ended"
    GOES_ON = "goes on"
    WAITS = "waits"  # for other runs, or for the device


@dataclass(eq=False, slots=True)
class _Place(Generic[Order]):
    """An order in the queue of each of its parties. `behind` counts the queues in which it is not the first."""

    order: Order
    behind: int = 0


class Line(Generic[Order]):
    """Unfinished orders, and the orders that wait for them.

    Two orders depend on each other if they share a party; a party is a session. The first order in a party's queue is
    unfinished, or waits in the queue of another party.
    """

    def __init__(self) -> None:
        self.is_open = True  # whether there is no unfinished order
        self._queues: dict[Hashable, deque[_Place[Order]]] = {}  # by party; none is empty

    def admit(self, order: Order, parties: Collection[Hashable], *, goes_in_slices: bool) -> bool:
        """Returns whether an order may be acted on now. If not, the order is held up.

        A held-up order keeps all later orders of its parties waiting. So does an order that goes in slices, until its
        `end`.
        """
        is_free = self._queues.keys().isdisjoint(parties)
        if goes_in_slices or not is_free:
            self._queue(order, parties)
        return is_free

    def end(self, parties: Collection[Hashable]) -> list[Order]:
        """Ends the unfinished order of these parties. Returns the orders that may be acted on now.

        Each returned order counts as unfinished until its own `end`, whether it goes in slices or not.
        """
        following = [self._leave(party) for party in parties]
        self.is_open = not self._queues
        return [order for order in following if order is not None]

    def orders(self) -> list[Order]:
        """Returns all orders that are unfinished or held up."""
        return [place.order for place in dict.fromkeys(chain.from_iterable(self._queues.values()))]

    def _queue(self, order: Order, parties: Collection[Hashable]) -> None:
        place = _Place(order)
        for party in parties:
            queue = self._queues.setdefault(party, deque())
            place.behind += bool(queue)
            queue.append(place)
        self.is_open = not self._queues

    def _leave(self, party: Hashable) -> Order | None:
        """Removes the first order of a party's queue. Returns the next one if it waits in no other queue."""
        queue = self._queues[party]
        queue.popleft()
        if not queue:
            del self._queues[party]
            return None
        queue[0].behind -= 1
        return queue[0].order if queue[0].behind == 0 else None


class Waiting(Enum):
    """Tells which kind of order waits while there are unfinished orders."""

    NOTHING = "nothing"
    BRIEF = "brief"  # an order that takes very little time
    ORDER = "order"


class TimeShares:
    """Decides when unfinished orders run, and for how long. Callers pass the time in ns. Owned by the device thread."""

    def __init__(self) -> None:
        self.pause_s = 0.0  # to sleep after the last slice
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
        """Returns whether the unfinished orders run now. A brief order may delay them by up to one slice."""
        if waiting is Waiting.NOTHING:
            self._others_ns = self._due_ns = 0
            return True
        return now_ns >= self._due_ns + (SLICE_NS if waiting is Waiting.BRIEF else 0)

    def begin_turn(self, now_ns: int) -> None:
        """Starts a turn as long as the time that other orders have used since the last turn, up to a bound."""
        self._until_ns = now_ns + min(self._others_ns, MOST_OWED_NS)

    def goes_on(self, slice_began_ns: int, now_ns: int, progress: Progress, *, is_foreign: bool) -> bool:
        """Notes that a slice has ended. Returns whether another slice follows in this turn.

        If none follows, other orders get as long as that slice took, and `SLICE_NS` at least.
        """
        self.pause_s = 0.0 if is_foreign else PAUSE_S
        self._others_ns = 0
        waits = progress is Progress.WAITS
        self._due_ns = 0 if waits else now_ns + max(min(now_ns - slice_began_ns, MOST_OWED_NS), SLICE_NS)
        return not waits and now_ns < self._until_ns


def slice_ns(*, is_foreign: bool) -> int:
    """Returns the length of a slice. `is_foreign`: it is one foreign call, which releases the interpreter lock."""
    return FOREIGN_SLICE_NS if is_foreign else SLICE_NS


def giving_way(reserved_bytes: Mapping[Run, int], lacking_bytes: int, *, above_bytes: int = 0) -> list[Run]:
    """Chooses the runs that give back their reservations so that `lacking_bytes` more are free, the largest first.

    Only runs that reserve more than `above_bytes` are chosen. The list is empty if all of them together free too
    little.
    """
    chosen: list[Run] = []
    for run in sorted(reserved_bytes, key=reserved_bytes.__getitem__, reverse=True):
        if lacking_bytes <= 0 or reserved_bytes[run] <= above_bytes:
            break
        chosen.append(run)
        lacking_bytes -= reserved_bytes[run]
    return chosen if lacking_bytes <= 0 else []
