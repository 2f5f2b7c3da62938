"""Counts and hands out device memory, and makes reservations give way where memory is short.

Rows that run op by op reserve what they take beside their blocks. They neither refuse room to others nor have these
wait for their end: they give it back, and begin anew (see `unfinished_orders`). Device thread, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fusewire_kernels.devices.base import Block, Device, Staged
from fusewire_protos.errors import OutOfMemory
from fusewire_server.device.orders import Order, Release, values_needed
from fusewire_server.scheduling.unfinished_orders import Line, giving_way
from fusewire_server.sessions.session import Value

MOST_RETREATS = 3  # how often a reservation gives way to others before it is refused


class MemoryCount(NamedTuple):
    """Bytes of buffers at one moment and at their most."""

    live_bytes: int
    peak_bytes: int
    pool_bytes: int
    donations: int
    donated_bytes: int


class Demand(NamedTuple):
    """What a row may take: a bound, and how to count it closely, which takes as long as many ops."""

    at_most_bytes: int
    count_bytes: Callable[[], int]


@dataclass(eq=False, slots=True)
class Reservation:
    """DeviceMemory for what is kept in no block. `stop` ends whatever uses it: it has gone to others."""

    demand: Demand
    stop: Callable[[], None]
    size_bytes: int = 0  # reserved now
    retreats: int = 0  # how often it has gone to others


class DeviceMemory:
    """Counts and hands out a device's memory. `line` holds the orders that are unfinished or held up."""

    def __init__(self, device: Device, line: Line[Order]) -> None:
        self._device = device
        self._line = line
        self._reservations: list[Reservation] = []
        self._reserved_bytes = 0  # by all of them
        self._live_bytes = 0  # any thread may read this, and the next three: one int each
        self._peak_bytes = 0
        self._donations = 0
        self._donated_bytes = 0

    def count(self) -> MemoryCount:
        """Any thread."""
        pool_bytes = self._device.pool_bytes()
        return MemoryCount(self._live_bytes, self._peak_bytes, pool_bytes, self._donations, self._donated_bytes)

    @property
    def live_bytes(self) -> int:
        return self._live_bytes

    # ---- blocks ----

    def may_hold(self, size_bytes: int) -> bool:
        """Whether memory holds so much beside all values, as far as sizes tell."""
        if self._exceeds(size_bytes):
            self._release_early()
        return not self._exceeds(size_bytes)

    def allocate(self, size_bytes: int) -> Block:
        """Raises OutOfMemory, but not because of what waits to be released, or is reserved."""
        return self._counted(self._find(size_bytes, lambda: self._device.allocate(size_bytes)))

    def put(self, staged: Staged) -> Block:
        """A block that holds the bytes staged. Raises as `allocate` does."""
        return self._counted(self._find(len(staged.memory), lambda: self._device.put(staged)))

    def give_back(self, block: Block) -> None:
        self._live_bytes -= block.size_bytes
        self._device.release(block)

    def release(self, values: tuple[Value, ...]) -> None:
        """Gives back the blocks of those that have one."""
        for value in values:
            block, value.block = value.block, None
            if block is not None:
                self.give_back(block)

    def hand_on(self, donor: Value, heir: Value) -> None:
        """The block of one value becomes another's, which is written over it."""
        heir.block = donor.block
        self._donations += 1
        self._donated_bytes += donor.spec.size_bytes

    def _counted(self, block: Block) -> Block:
        self._live_bytes += block.size_bytes
        self._peak_bytes = max(self._peak_bytes, self._live_bytes)
        return block

    def _find(self, size_bytes: int, take: Callable[[], Block]) -> Block:
        if self._line.is_open:
            return take()
        if not self._fits(size_bytes):
            self._make(size_bytes)
        try:
            return take()
        except OutOfMemory:
            if not self._fits(size_bytes):
                raise
        # The device has less room than was counted: it rounds sizes, and memory may be in pieces.
        self._release_early()
        self._retreat(self._reserved_bytes)
        return take()

    # ---- reservations ----

    def enter(self, demand: Demand, stop: Callable[[], None]) -> Reservation:
        """A reservation of nothing yet. `stop` is called when it goes to others."""
        reservation = Reservation(demand, stop)
        self._reservations.append(reservation)
        return reservation

    def leave(self, reservation: Reservation) -> None:
        """It will reserve nothing more."""
        self._reservations.remove(reservation)
        self.unreserve(reservation)

    def reserve(self, reservation: Reservation) -> bool:
        """Whether it has room now; if not, it may ask again when others have ended.

        Raises OutOfMemory if it cannot have it, or has given way too often.
        """
        at_most_bytes, count_bytes = reservation.demand
        size_bytes = at_most_bytes if self._fits(at_most_bytes) else count_bytes()
        if not self._fits(size_bytes):
            self._make(size_bytes, above_bytes=size_bytes)
        if self._fits(size_bytes):
            self._reserved_bytes += size_bytes
            reservation.size_bytes = size_bytes
            return True
        if self._exceeds(size_bytes) or reservation.retreats >= MOST_RETREATS:
            used_bytes = self._live_bytes + self._reserved_bytes
            raise OutOfMemory(
                f"op by op the intermediate values take {size_bytes} bytes beside the {used_bytes} bytes in use"
            )
        return False

    def unreserve(self, reservation: Reservation) -> None:
        self._reserved_bytes -= reservation.size_bytes
        reservation.size_bytes = 0

    def _fits(self, size_bytes: int) -> bool:
        return not self._exceeds(self._reserved_bytes + size_bytes)

    def _exceeds(self, size_bytes: int) -> bool:
        """Whether memory does not hold so much beside all values."""
        return self._live_bytes + size_bytes > self._device.info.memory_bytes

    def _make(self, size_bytes: int, *, above_bytes: int = 0) -> None:
        """Makes so much fit, if that can be had from what is held up and from those that have reserved more."""
        if self._exceeds(size_bytes):
            self._release_early()
        self._reserve_closely()
        lacking_bytes = self._live_bytes + self._reserved_bytes + size_bytes - self._device.info.memory_bytes
        self._retreat(lacking_bytes, above_bytes=above_bytes)

    def _reserve_closely(self) -> None:
        for one in self._reservations:
            if one.size_bytes:
                exact_bytes = one.demand.count_bytes()
                self._reserved_bytes += exact_bytes - one.size_bytes
                one.size_bytes = exact_bytes

    def _retreat(self, lacking_bytes: int, *, above_bytes: int = 0) -> None:
        reserved_bytes = {one: one.size_bytes for one in self._reservations if one.size_bytes}
        for one in giving_way(reserved_bytes, lacking_bytes, above_bytes=above_bytes):
            one.stop()
            self.unreserve(one)
            one.retreats += 1

    def _release_early(self) -> None:
        """What is held up to be released goes now, unless an order that waits needs it."""
        waiting = self._line.orders()
        needed = {value for order in waiting for value in values_needed(order)}
        for order in waiting:
            if isinstance(order, Release):
                self.release(tuple([value for value in order.values if value not in needed]))
