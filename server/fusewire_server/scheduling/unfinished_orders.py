"""Decides which orders overtake unfinished orders: those that have no session in common with them. Pure.

A row that runs op by op takes time in proportion to the ops of its program. The read of a large value takes time in
proportion to its data. The device thread works on these orders in slices. A slice is a part of such an order; between
slices the thread attends to other orders. Several orders may be unfinished at once; they take turns. An order overtakes
all unfinished orders if it has no session in common with them, or with any order that was held up earlier. Every other
order waits until the earlier orders that concern its sessions have ended. So the orders of a session never overtake
each other.

No client can see that an order was overtaken. A value belongs to one session, and an order reads, writes, frees or
overwrites only values of the sessions that it concerns. So two orders that concern different sessions have no value in
common. Either order may come first, or their slices may alternate: the result is the same as if the engine thread had
sent the overtaking order first. In particular

- no overtaking order frees or donates a value that an unfinished order reads or will write, because an order that frees
  or donates such a value concerns a session of the unfinished order;
- a block that an overtaking order releases held a value of another session, and no held-up order will use that value;
- a block that is newly allocated was released before; before its end, an unfinished order releases only results of rows
  that have failed, the order does not touch these results again, and no client can read them;
- an arena keeps no data from one launch of a plan to the next, and the device runs launches in the order in which they
  are issued.

A session that has ended sends nothing more, and nobody reads its values. So an unfinished order that concerns only
ended sessions may be given up after any slice, because nobody will read the values that the order has not yet written.

A held-up order may release a value early if no unfinished order and no other held-up order needs the value, because no
later order can name a value that has died.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable
from itertools import chain
from typing import Generic, TypeVar

Order = TypeVar("Order")


class _Place(Generic[Order]):
    """An order in the queue of each of its parties. `behind` counts the queues in which the order is not the first."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.behind = 0


class UnfinishedOrders(Generic[Order]):
    """Unfinished orders, and the orders that wait for them.

    Two orders depend on each other if they share a party; a party is a session. The first order in a party's queue is
    unfinished, or it waits because other orders are before it in the queue of another party.
    """

    def __init__(self) -> None:
        self.is_empty = True  # whether there is no unfinished order
        self._queues: dict[Hashable, deque[_Place[Order]]] = {}  # party -> its queue, which is never empty

    def try_begin(self, order: Order, parties: Collection[Hashable], *, goes_in_slices: bool) -> bool:
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
