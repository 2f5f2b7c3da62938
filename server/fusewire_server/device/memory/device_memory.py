"""Counts and hands out device memory, and takes back temporaries when memory is short.

A run that goes op by op holds temporaries: blocks of values that no client can name. If a value needs their memory, or
an older run does, the run gives them back and begins its iteration again. So temporaries make no value fail, and none
of an older run. The oldest run gives way to values alone, so it gets on, and every wait for memory ends. All functions
run on the device thread, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from fusewire_kernels.devices.base import Block, Device, Staged
from fusewire_protos.errors import OutOfMemory
from fusewire_server.device.memory.tenant_reserve import TenantReserve
from fusewire_server.device.orders import Order, Release, values_needed
from fusewire_server.scheduling.unfinished_orders import UnfinishedOrders
from fusewire_server.sessions.device_share import NOBODYS, DeviceShare
from fusewire_server.sessions.session import Value


class MemoryCount(NamedTuple):
    """Counts the bytes in blocks now and at the peak, the bytes in the device's pool, and the donated blocks."""

    live_bytes: int
    peak_bytes: int
    pool_bytes: int
    donations: int
    donated_bytes: int


class DeviceMemory:
    """Counts and hands out a device's memory. `unfinished` holds the orders that are unfinished or held up."""

    def __init__(
        self, device: Device, unfinished: UnfinishedOrders[Order], reserve: TenantReserve | None = None
    ) -> None:
        self._device = device
        self._reserve = reserve or TenantReserve()
        self._unfinished = unfinished
        self._temporaries: list[Temporaries] = []  # of all runs, the oldest first
        self._live_bytes = 0  # any thread may read this field and the next four, because each is one int
        self._temporary_bytes = 0
        self._peak_bytes = 0
        self._donations = 0
        self._donated_bytes = 0

    def count(self) -> MemoryCount:
        """Returns the counts. May be called on any thread."""
        pool_bytes = self._device.pool_bytes()
        return MemoryCount(self._live_bytes, self._peak_bytes, pool_bytes, self._donations, self._donated_bytes)

    @property
    def values_bytes(self) -> int:
        """The bytes of all blocks but temporaries. May be asked for on any thread."""
        return self._live_bytes - self._temporary_bytes

    # ---- blocks ----

    def allocate(self, size_bytes: int, share: DeviceShare = NOBODYS) -> Block:
        """Allocates a block, which counts in the share of a tenant.

        Raises OutOfMemory only if held-up releases and the temporaries of all runs together free too little, or if the
        memory is reserved for other tenants.
        """
        take = partial(self._device.allocate, size_bytes)
        return self._counted(self._find(size_bytes, take, self._temporaries, share), share)

    def put(self, staged: Staged, share: DeviceShare = NOBODYS) -> Block:
        """Returns a block that holds the staged bytes. Raises as `allocate` does."""
        take = partial(self._device.put, staged)
        return self._counted(self._find(len(staged.memory), take, self._temporaries, share), share)

    def give_back(self, block: Block, share: DeviceShare = NOBODYS) -> None:
        self._live_bytes -= block.size_bytes
        share.held_bytes -= block.size_bytes
        if not share.held_bytes:
            self._reserve.note_empty(share)
        self._device.release(block)

    def hand_over(self, block: Block, share: DeviceShare) -> None:
        """Has a block that was nobody's count in the share of a tenant."""
        NOBODYS.held_bytes -= block.size_bytes
        self._hold(block, share)

    def release(self, values: tuple[Value, ...]) -> None:
        """Gives back the blocks of those values that have one."""
        for value in values:
            block, value.block = value.block, None
            if block is not None:
                self.give_back(block, value.share)

    def donate(self, donor: Value, result: Value) -> None:
        """Gives the block of a donor to the result that is written over the donor."""
        result.block = donor.block
        self._donations += 1
        self._donated_bytes += donor.spec.size_bytes

    def _counted(self, block: Block, share: DeviceShare = NOBODYS) -> Block:
        self._live_bytes += block.size_bytes
        if self._live_bytes > self._peak_bytes:  # noqa: PLR1730 - runs for each block, and `max` is slower
            self._peak_bytes = self._live_bytes
        self._hold(block, share)
        return block

    def _hold(self, block: Block, share: DeviceShare) -> None:
        share.held_bytes += block.size_bytes
        if share.held_bytes == block.size_bytes:
            self._reserve.note_held(share)

    def _find(
        self,
        size_bytes: int,
        take: Callable[[], Block],
        younger: Sequence[Temporaries],
        share: DeviceShare = NOBODYS,
    ) -> Block:
        """Takes a block. If there is none, releases what nobody needs, and then has temporaries give way."""
        if self._reserve.is_kept:
            take = partial(self._take_unreserved, size_bytes, take, share)
        try:
            return take()
        except OutOfMemory:
            if self._unfinished.is_empty:
                raise
        self._release_early()
        for temporaries in self._giving_way(size_bytes, younger):
            try:
                return take()
            except OutOfMemory:
                temporaries.stop()
        return take()

    def _take_unreserved(self, size_bytes: int, take: Callable[[], Block], share: DeviceShare) -> Block:
        """Takes a block, unless its memory is reserved for other tenants."""
        self._reserve.check(share, size_bytes, self._live_bytes, self._device.info.memory_bytes)
        return take()

    def _giving_way(self, size_bytes: int, younger: Sequence[Temporaries]) -> list[Temporaries]:
        """Returns the temporaries to give back one after another, the youngest first; none if that were in vain."""
        held = [each for each in reversed(younger) if each.size_bytes]
        lasting_bytes = self._live_bytes - sum([each.size_bytes for each in held])
        return held if lasting_bytes + size_bytes <= self._device.info.memory_bytes else []

    # ---- temporaries ----

    def begin_run(self, stop: Callable[[], None]) -> Temporaries:
        """Returns the temporaries of a new run, none yet. `stop` is called when others need the memory."""
        temporaries = Temporaries(self, self._device, stop)
        self._temporaries.append(temporaries)
        return temporaries

    def end_run(self, temporaries: Temporaries) -> None:
        """Ends the temporaries of a run."""
        temporaries.release()
        self._temporaries.remove(temporaries)

    def allocate_temporary(self, size_bytes: int, owner: Temporaries) -> Block:
        """Allocates a block for a run. Younger runs give way for it. Raises OutOfMemory as `allocate` does."""
        younger = self._temporaries[self._temporaries.index(owner) + 1 :]
        return self._counted(self._find(size_bytes, lambda: self._device.allocate(size_bytes), younger))

    def count_temporary(self, more_bytes: int) -> None:
        """Notes that the temporaries of a run hold so many more bytes, or fewer."""
        self._temporary_bytes += more_bytes

    def is_held_by_older(self, owner: Temporaries) -> bool:
        """Returns whether an older run than the owner holds temporaries."""
        return any(each.size_bytes for each in takewhile(lambda each: each is not owner, self._temporaries))

    def _release_early(self) -> None:
        """Releases the values of held-up releases now, except values that a waiting order needs.

        A value that has been packed meanwhile is another object with the same address.
        """
        waiting = self._unfinished.orders()
        needed = {_address(value) for order in waiting for value in values_needed(order)}
        for order in waiting:
            if isinstance(order, Release):
                self.release(tuple([value for value in order.values if _address(value) not in needed]))


class Temporaries:
    """The blocks that one run holds beside its results. `stop` makes the run give them back."""

    def __init__(self, memory: DeviceMemory, device: Device, stop: Callable[[], None]) -> None:
        self.stop = stop
        self.size_bytes = 0
        self._memory = memory
        self._device = device
        self._blocks: set[Block] = set()

    def allocate(self, size_bytes: int) -> Block:
        """Allocates a block. Raises OutOfMemory if it does not fit beside all that is in use."""
        block = self._memory.allocate_temporary(size_bytes, self)
        self._blocks.add(block)
        self.size_bytes += block.size_bytes
        self._memory.count_temporary(block.size_bytes)
        return block

    def allocate_filled(self, data: bytes) -> Block:
        """Allocates a block that holds these bytes. Raises as `allocate` does."""
        block = self.allocate(len(data))
        self._device.write(block, memoryview(data))
        return block

    def give_back(self, block: Block) -> None:
        self._forget(block)
        self._memory.give_back(block)

    def become(self, value: Value, block: Block) -> None:
        """Makes a block that of a value, in place of the value's own."""
        self._forget(block)
        self._memory.release((value,))
        self._memory.hand_over(block, value.share)
        value.block = block

    def release(self) -> None:
        """Gives back all blocks."""
        for block in [*self._blocks]:
            self.give_back(block)

    def _forget(self, block: Block) -> None:
        self._blocks.remove(block)
        self.size_bytes -= block.size_bytes
        self._memory.count_temporary(-block.size_bytes)


def _address(value: Value) -> int | None:
    return None if value.block is None else value.block.address
