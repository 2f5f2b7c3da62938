"""Which orders may overtake a run that goes on in slices. Pure.

A row that runs op by op takes as long as its program has ops; it is run in slices, between which the device thread
attends to others. An order overtakes the unfinished run if it concerns none of the sessions of that run, nor of any
order that was held up before it. Every other order waits until the run is finished, and they keep their order.

Why nobody can tell. A value belongs to one session, and what an order reads, writes, frees or overwrites are values of
the sessions that it concerns. So two orders that concern different sessions have no value in common, and either may
come first: what overtakes leaves everything as if the loop had given it first. In particular

- nothing that the unfinished run reads or is yet to write is freed or donated: whoever does that concerns its session;
- a block that is released by what overtakes was a value of another session, which no held-up order is about to use;
- a block that is newly handed out had been given back, and nothing of the unfinished run is given back before its end;
- an arena holds nothing from one launch to the next, and the device runs launches in the order in which it is told.

What differs is when memory comes back: releases may be held up. So whoever finds no room while a run is unfinished
must first let all that is held up go on (see `DeviceThread`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Order = TypeVar("Order")


class Line(Generic[Order]):
    """The orders that wait for an unfinished run. Parties are what makes two orders depend on each other: sessions."""

    def __init__(self) -> None:
        self.is_open = True  # whether no run is unfinished
        self._barred: set[Hashable] = set()
        self._held_up: list[Order] = []

    def begin(self, parties: Iterable[Hashable]) -> None:
        """A run of these parties goes on in slices. There is one such run at most."""
        assert self.is_open, "one run in slices at a time"
        self.is_open = False
        self._barred.update(parties)

    def admit(self, order: Order, parties: Iterable[Hashable], *, goes_in_slices: bool) -> bool:
        """Whether an order may be acted on now; else it is held up, and bars its parties to all that come after."""
        if self.is_open or not (goes_in_slices or not self._barred.isdisjoint(parties)):
            return True
        self._held_up.append(order)
        self._barred.update(parties)
        return False

    def end(self) -> list[Order]:
        """The run is finished; what it held up, in order, is to be admitted anew."""
        held_up, self._held_up = self._held_up, []
        self._barred.clear()
        self.is_open = True
        return held_up
