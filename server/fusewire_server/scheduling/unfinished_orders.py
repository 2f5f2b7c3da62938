"""Splits device-thread time evenly between unfinished orders and those that overtake them. Pure.

A row that runs op by op takes as long as its program has ops; a long row's plan, or reading a large value, as long as
there are data. All of them go on in slices, between which the device thread attends to others. Several such orders
may be unfinished at once; they take turns. An order overtakes all that are unfinished if it concerns none of their
sessions, nor of any order that was held up before it. Every other order waits until those before it that concern its
sessions are finished: by session, orders keep their order.

Time (`TimeShares`). Those that are unfinished and those that overtake them have about the same time while there are
both: each side answers what the other has used, within a bound. What counts is use: time in which nobody had the
processor, or somebody waited for the interpreter, is nobody's share.

Why nobody can tell. A value belongs to one session, and what an order reads, writes, frees or overwrites are values of
the sessions that it concerns. So two orders that concern different sessions have no value in common, and either may
come first, or their parts alternate: what overtakes leaves everything as if the loop had given it first. In particular

- nothing that an unfinished order reads or is yet to write is freed or donated: whoever does that concerns its session;
- a block that is released by what overtakes was a value of another session, which no held-up order is about to use;
- a block that is newly handed out had been given back, and what an unfinished order gives back before its end are
  results of rows that have failed: it touches them no more, and nobody sees them;
- an arena holds nothing from one launch of a whole plan to the next, and the device runs launches in the order in which
  it is told; a plan in slices has an arena that no other uses before its row has ended.

A session that has ended sends nothing more, and nobody reads its values. So what is unfinished for it alone may be
given up at any place: what it has not written is what nobody would have read.

Memory. A run at tier 0 reserves room for its intermediate values, which only others can need meanwhile. They must
neither wait for its end, which may be hours away, nor be refused for its sake: it gives way, and begins its row anew
when there is room again. That changes nothing either: a row writes its results when all its ops have run, so until then
all that it reads is as it was. (A plan writes as it goes. It reserves nothing, and never begins anew; its results have
memory only from when it first has the arena.) Values take the room of any run; a run takes that of greater ones, and
waits for the others. A release that is held up may give back early what no other order needs that is unfinished or held
up: none that comes later can name what has died.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Generic, TypeVar

SLICE_NS = 300_000
FOREIGN_SLICE_NS = 1_000_000  # longer where others run meanwhile: at its end the interpreter lock is waited for
MOST_OWED_NS = 5_000_000  # so long each side goes on at most in answer to the other
# Between other slices, so that a thread which waits for the interpreter lock gets it: while ops run, every launch lets
# go of it, but too briefly for the other to wake up in time.
PAUSE_S = 0.00005
LOOK_S = 0.000_001  # before the next look for orders, and likewise; the system makes a little more of it

Order = TypeVar("Order")
Run = TypeVar("Run")


class Progress(Enum):
    """What a slice came to."""

    ENDED = "ended"
    GOES_ON = "goes on"
    WAITS = "waits"  # for others, or for the device


@dataclass(eq=False, slots=True)
class _Place(Generic[Order]):
    """An order in the queue of each of its parties; in `behind` of these it is not the first."""

    order: Order
    behind: int = 0


class Line(Generic[Order]):
    """Unfinished orders and those that wait for them. Parties are what makes two depend on each other: sessions.

    The first in a party's queue is unfinished, or waits in the queue of another party.
    """

    def __init__(self) -> None:
        self.is_open = True  # whether nothing is unfinished
        self._queues: dict[Hashable, deque[_Place[Order]]] = {}  # by party; none is empty

    def admit(self, order: Order, parties: Collection[Hashable], *, goes_in_slices: bool) -> bool:
        """Whether an order may be acted on now; else it is held up, and bars its parties to all that come after.

        One that goes in slices bars them too, until its `end`.
        """
        is_free = self._queues.keys().isdisjoint(parties)
        if goes_in_slices or not is_free:
            self._queue(order, parties)
        return is_free

    def end(self, parties: Collection[Hashable]) -> list[Order]:
        """What these parties had unfinished has ended; the orders that may be acted on now.

        Each of them is unfinished until its own `end`, whether it goes in slices or not.
        """
        following = [self._leave(party) for party in parties]
        self.is_open = not self._queues
        return [order for order in following if order is not None]

    def orders(self) -> list[Order]:
        """All that are unfinished or held up."""
        return [place.order for place in dict.fromkeys(chain.from_iterable(self._queues.values()))]

    def _queue(self, order: Order, parties: Collection[Hashable]) -> None:
        place = _Place(order)
        for party in parties:
            queue = self._queues.setdefault(party, deque())
            place.behind += bool(queue)
            queue.append(place)
        self.is_open = not self._queues

    def _leave(self, party: Hashable) -> Order | None:
        """The first of a party's queue goes; the one behind it if that waits in no queue any more."""
        queue = self._queues[party]
        queue.popleft()
        if not queue:
            del self._queues[party]
            return None
        queue[0].behind -= 1
        return queue[0].order if queue[0].behind == 0 else None


class Waiting(Enum):
    """What stands before the unfinished orders."""

    NOTHING = "nothing"
    BRIEF = "brief"  # an order that takes next to nothing
    ORDER = "order"


class TimeShares:
    """When unfinished orders go on, and for how long. Told the time, in ns; owned by the device thread."""

    def __init__(self) -> None:
        self.pause_s = 0.0  # after the last slice
        self._others_ns = 0  # used by others since unfinished orders last stopped for them
        self._due_ns = 0  # when they go on whoever waits
        self._until_ns = 0  # how long this turn of theirs lasts

    def begin(self, *, is_first: bool) -> None:
        """An order begins to go on in slices: at once, whoever waits."""
        if is_first:
            self._others_ns = 0
        self._due_ns = 0

    def overtaken(self, used_ns: int) -> None:
        """An order that overtook them has used so much."""
        self._others_ns += used_ns

    def is_turn(self, now_ns: int, waiting: Waiting) -> bool:
        """Whether the unfinished go on now. What is brief goes first for as long as a slice."""
        if waiting is Waiting.NOTHING:
            self._others_ns = self._due_ns = 0
            return True
        return now_ns >= self._due_ns + (SLICE_NS if waiting is Waiting.BRIEF else 0)

    def begin_turn(self, now_ns: int) -> None:
        """They go on for as long as others have used since they last did."""
        self._until_ns = now_ns + min(self._others_ns, MOST_OWED_NS)

    def goes_on(self, slice_began_ns: int, now_ns: int, progress: Progress, *, is_foreign: bool) -> bool:
        """A slice has ended. Whether another follows in this turn; if not, others have as long as that slice took."""
        self.pause_s = 0.0 if is_foreign else PAUSE_S
        self._others_ns = 0
        waits = progress is Progress.WAITS
        self._due_ns = 0 if waits else now_ns + max(min(now_ns - slice_began_ns, MOST_OWED_NS), SLICE_NS)
        return not waits and now_ns < self._until_ns


def slice_ns(*, is_foreign: bool) -> int:
    """How long a slice is. `is_foreign`: it is one foreign call, which leaves the interpreter to other threads."""
    return FOREIGN_SLICE_NS if is_foreign else SLICE_NS


def giving_way(reserved_bytes: Mapping[Run, int], lacking_bytes: int, *, above_bytes: int = 0) -> list[Run]:
    """The runs that give back what they have reserved so that `lacking_bytes` more are free, the greatest first.

    Only those with more than `above_bytes` may be among them. None do if all of them together would not suffice.
    """
    chosen: list[Run] = []
    for run in sorted(reserved_bytes, key=reserved_bytes.__getitem__, reverse=True):
        if lacking_bytes <= 0 or reserved_bytes[run] <= above_bytes:
            break
        chosen.append(run)
        lacking_bytes -= reserved_bytes[run]
    return chosen if lacking_bytes <= 0 else []
