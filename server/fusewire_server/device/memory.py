"""Counts and hands out device memory, and takes back reservations when memory is short.

A row that runs op by op reserves memory for its intermediate values, because these values lie in no block. If another
order needs that memory, the row gives its reservation back and starts again (see `giving_way`). So a reservation
makes no other order fail or wait. All functions run on the device thread, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fusewire_kernels.devices.base import Block, Device, Staged
from fusewire_protos.errors import OutOfMemory
from fusewire_server.device.orders import Order, Release, values_needed
from fusewire_server.scheduling.giving_way import giving_way
from fusewire_server.scheduling.unfinished_orders import UnfinishedOrders
from fusewire_server.sessions.session import Value

MOST_RETREATS = 3  # how often a run gives up its reservation for other orders before the run is refused memory


class MemoryCount(NamedTuple):
    """Counts the bytes in blocks now and at the peak, the bytes in the device's pool, and the donated blocks."""

    live_bytes: int
    peak_bytes: int
    pool_bytes: int
    donations: int
    donated_bytes: int


class Demand(NamedTuple):
    """Says how much memory a row may need.

    `at_most_bytes` is an upper bound. `count_bytes` counts the exact number, and takes as long as many ops take.
    """

    at_most_bytes: int
    count_bytes: Callable[[], int]


@dataclass(eq=False, slots=True)
class Reservation:
    """Device memory for values that lie in no block. `stop` stops the use when other orders need the memory."""

    demand: Demand
    stop: Callable[[], None]
    size_bytes: int = 0  # reserved now
    retreats: int = 0  # how often the memory was given up for other orders


class DeviceMemory:
    """Counts and hands out a device's memory. `unfinished` holds the orders that are unfinished or held up."""

    def __init__(self, device: Device, unfinished: UnfinishedOrders[Order]) -> None:
        self._device = device
        self._unfinished = unfinished
        self._reservations: list[Reservation] = []
        self._reserved_bytes = 0  # the sum of all reservations
        self._live_bytes = 0  # any thread may read this field and the next three, because each is one int
        self._peak_bytes = 0
        self._donations = 0
        self._donated_bytes = 0

    def count(self) -> MemoryCount:
        """Returns the counts. May be called on any thread."""
        pool_bytes = self._device.pool_bytes()
        return MemoryCount(self._live_bytes, self._peak_bytes, pool_bytes, self._donations, self._donated_bytes)

    # ---- blocks ----

    def allocate(self, size_bytes: int) -> Block:
        """Allocates a block. Raises OutOfMemory only if held-up releases and reservations together free too little."""
        return self._counted(self._find(size_bytes, lambda: self._device.allocate(size_bytes)))

    def put(self, staged: Staged) -> Block:
        """Returns a block that holds the staged bytes. Raises as `allocate` does."""
        return self._counted(self._find(len(staged.memory), lambda: self._device.put(staged)))

    def give_back(self, block: Block) -> None:
        self._live_bytes -= block.size_bytes
        self._device.release(block)

    def release(self, values: tuple[Value, ...]) -> None:
        """Gives back the blocks of those values that have one."""
        for value in values:
            block, value.block = value.block, None
            if block is not None:
                self.give_back(block)

    def donate(self, donor: Value, result: Value) -> None:
        """Gives the block of a donor to the result that is written over the donor."""
        result.block = donor.block
        self._donations += 1
        self._donated_bytes += donor.spec.size_bytes

    def _counted(self, block: Block) -> Block:
        self._live_bytes += block.size_bytes
        self._peak_bytes = max(self._peak_bytes, self._live_bytes)
        return block

    def _find(self, size_bytes: int, take: Callable[[], Block]) -> Block:
        if self._unfinished.is_empty:
            return take()
        if not self._fits(size_bytes):
            self._make(size_bytes)
        try:
            return take()
        except OutOfMemory:
            if not self._fits(size_bytes):
                raise
        # The device has less memory than the sizes say, because the device rounds sizes or has fragmented memory.
        self._release_early()
        self._retreat(self._reserved_bytes)
        return take()

    # ---- reservations ----

    def enter(self, demand: Demand, stop: Callable[[], None]) -> Reservation:
        """Adds a reservation of 0 bytes. `stop` is called when other orders take the reserved memory."""
        reservation = Reservation(demand, stop)
        self._reservations.append(reservation)
        return reservation

    def leave(self, reservation: Reservation) -> None:
        """Removes a reservation."""
        self._reservations.remove(reservation)
        self.unreserve(reservation)

    def reserve(self, reservation: Reservation) -> bool:
        """Reserves the memory of the demand. Returns False if the memory is free only after other orders have ended.

        Raises OutOfMemory if the memory does not fit beside all values, or if the reservation has already been given
        up `MOST_RETREATS` times.
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
                f"running op by op needs {size_bytes} bytes for intermediate values; {used_bytes} bytes are in use"
            )
        return False

    def unreserve(self, reservation: Reservation) -> None:
        self._reserved_bytes -= reservation.size_bytes
        reservation.size_bytes = 0

    def _fits(self, size_bytes: int) -> bool:
        return not self._exceeds(self._reserved_bytes + size_bytes)

    def _exceeds(self, size_bytes: int) -> bool:
        """Returns whether `size_bytes` do not fit beside all values."""
        return self._live_bytes + size_bytes > self._device.info.memory_bytes

    def _make(self, size_bytes: int, *, above_bytes: int = 0) -> None:
        """Frees memory for `size_bytes`, if held-up releases and reservations of more than `above_bytes` suffice."""
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
        """Releases the values of held-up releases now, except values that a waiting order needs."""
        waiting = self._unfinished.orders()
        needed = {value for order in waiting for value in values_needed(order)}
        for order in waiting:
            if isinstance(order, Release):
                self.release(tuple([value for value in order.values if value not in needed]))
