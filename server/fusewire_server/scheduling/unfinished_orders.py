"""Splits device-thread time evenly between unfinished orders and the orders that overtake them. Pure.

A row that runs op by op takes time in proportion to the ops of its program. The read of a large value takes time in
proportion to its data. The device thread works on these orders in slices. A slice is a part of such an order; between
slices the thread attends to other orders. Several orders may be unfinished at once; they take turns. An order overtakes
all unfinished orders if it has no session in common with them, or with any order that was held up earlier. Every other
order waits until the earlier orders that concern its sessions have ended. So the orders of a session never overtake
each other.

Time (`TimeShares`). The unfinished orders and the orders that overtake them get about the same time while there are
both: each side gets as much as the other side has just used, up to `MOST_OWED_NS`. Only used time counts; time in which
a thread waited for a processor or for the interpreter lock is charged to neither side.

Results. No client can see that an order was overtaken. A value belongs to one session, and an order reads, writes,
frees or overwrites only values of the sessions that it concerns. So two orders that concern different sessions have no
value in common. Either order may come first, or their slices may alternate: the result is the same as if the loop
thread had sent the overtaking order first. In particular

- no overtaking order frees or donates a value that an unfinished order reads or will write, because an order that frees
  or donates such a value concerns a session of the unfinished order;
- a block that an overtaking order releases held a value of another session, and no held-up order will use that value;
- a block that is newly allocated was released before; before its end, an unfinished order releases only results of rows
  that have failed, the order does not touch these results again, and no client can read them;
- an arena keeps no data from one launch of a plan to the next, and the device runs launches in the order in which they
  are issued.

A session that has ended sends nothing more, and nobody reads its values. So an unfinished order that concerns only
ended sessions may be given up after any slice, because nobody will read the values that the order has not yet written.

Memory. A run at tier 0 reserves memory for its intermediate values. Other orders may need that memory. These orders
must not wait until the run ends, because that may take hours, and must not be refused memory because of the run. So the
run gives its reservation back, and starts its row again when there is memory. That changes no result, because a row at
tier 0 writes its results only after all its ops have run, and until then its inputs are unchanged. An allocation of a
value may take the reservation of any run. A run may take the reservations of larger runs only, and waits for the other
runs. A held-up order may release a value early if no unfinished order and no other held-up order needs the value,
because no later order can name a value that has died.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Generic, TypeVar

SLICE_NS = 300_000
MOST_OWED_NS = 5_000_000  # the most time that each side gets for the time that the other side has used
# The pause between two slices. During the pause another thread gets the interpreter lock. Every launch also releases
# the lock while ops run, but so briefly that a thread that waits for the lock wakes up too late.
PAUSE_S = 0.00005
# The pause between two looks for orders, for the same reason. The operating system makes the pause a little longer.
LOOK_S = 0.000_001

Order = TypeVar("Order")
Run = TypeVar("Run")


class Progress(Enum):
    """Tells how a slice ended."""

    ENDED = "ended"
    GOES_ON = "goes on"
    WAITS = "waits"  # for other runs, or for the device


@dataclass(eq=False, slots=True)
class _Place(Generic[Order]):
    """An order in the queue of each of its parties. `behind` counts the queues in which the order is not the first."""

    order: Order
    behind: int = 0


class UnfinishedOrders(Generic[Order]):
    """Unfinished orders, and the orders that wait for them.

    Two orders depend on each other if they share a party; a party is a session. The first order in a party's queue is
    unfinished, or it waits because other orders are before it in the queue of another party.
    """

    def __init__(self) -> None:
        self.is_empty = True  # whether there is no unfinished order
        self._queues: dict[Hashable, deque[_Place[Order]]] = {}  # party -> its queue, which is never empty

    def admit(self, order: Order, parties: Collection[Hashable], *, goes_in_slices: bool) -> bool:
        """Returns whether an order may be acted on now. If not, the order is held up.

        A held-up order keeps all later orders of its parties waiting. An order that goes in slices does the same until
        `end` is called for it.
        """
        is_free = self._queues.keys().isdisjoint(parties)
        if goes_in_slices or not is_free:
            self._queue(order, parties)
        return is_free

    def end(self, parties: Collection[Hashable]) -> list[Order]:
        """Ends the unfinished order of these parties. Returns the orders that may be acted on now.

        Each returned order counts as unfinished until `end` is called for it, whether it goes in slices or not.
        """
        following = [self._leave(party) for party in parties]
        self.is_empty = not self._queues
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
        self.is_empty = not self._queues

    def _leave(self, party: Hashable) -> Order | None:
        """Removes the first order of a party's queue. Returns the next order if it is now first in all its queues."""
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
        return now_ns >= self._due_ns + (SLICE_NS if waiting is Waiting.BRIEF else 0)

    def begin_turn(self, now_ns: int) -> None:
        """Starts a turn of the unfinished orders.

        The turn lasts as long as the time that other orders have used since the last turn, up to `MOST_OWED_NS`.
        """
        self._until_ns = now_ns + min(self._others_ns, MOST_OWED_NS)

    def goes_on(self, slice_began_ns: int, now_ns: int, progress: Progress) -> bool:
        """Notes that a slice has ended. Returns whether another slice follows in this turn.

        If none follows, other orders get as much time as that slice took, but at most `MOST_OWED_NS` and at least
        `SLICE_NS`. If the slice ended because its order waits, unfinished orders may run again at once.
        """
        self._others_ns = 0
        waits = progress is Progress.WAITS
        self._due_ns = 0 if waits else now_ns + max(min(now_ns - slice_began_ns, MOST_OWED_NS), SLICE_NS)
        return not waits and now_ns < self._until_ns


def giving_way(reserved_bytes: Mapping[Run, int], lacking_bytes: int, *, above_bytes: int) -> list[Run]:
    """Chooses the runs that give back their reservations so that `lacking_bytes` more are free, the largest first.

    Only runs that reserve more than `above_bytes` are chosen. The list is empty if all such runs together free too
    little.
    """
    chosen: list[Run] = []
    for run in sorted(reserved_bytes, key=reserved_bytes.__getitem__, reverse=True):
        if lacking_bytes <= 0 or reserved_bytes[run] <= above_bytes:
            break
        chosen.append(run)
        lacking_bytes -= reserved_bytes[run]
    return chosen if lacking_bytes <= 0 else []
