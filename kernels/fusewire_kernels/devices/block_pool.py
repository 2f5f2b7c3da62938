"""Keeps released blocks by size class, so that the next request of a class gets one without a call to the allocator."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable

from fusewire_kernels.devices.base import Block, BlockCount
from fusewire_protos.errors import OutOfMemory


class BlockPool:
    """Gives out blocks, and keeps released ones.

    `new_block` allocates a block of exactly so many bytes, and may raise OutOfMemory. `free` is called with each block
    that is released and not kept; without it such a block is freed when nobody holds it. `limit_bytes` limits the
    blocks in use and the kept blocks, taken together. `cached_bytes` limits the kept blocks. Size classes are multiples
    of `unit_bytes`. Blocks of more than `largest_bytes` are of the size asked for, and are not kept.

    The pool counts the blocks in use and keeps no reference to them: the callers hold them. A lent block does not count
    as kept or in use until `adopt` or `take_back` takes it back. If the caller drops a lent block, it is freed.
    """

    def __init__(
        self,
        new_block: Callable[[int], Block],
        *,
        limit_bytes: int,
        cached_bytes: int,
        unit_bytes: int,
        largest_bytes: int | None = None,
        free: Callable[[Block], None] = lambda _: None,
    ) -> None:
        self._new_block = new_block
        self._free = free
        self._limit_bytes = limit_bytes
        self._cached_bytes = cached_bytes
        self._unit_bytes = unit_bytes
        self._largest_bytes = limit_bytes if largest_bytes is None else largest_bytes
        self._held_bytes = 0  # of the blocks in use and the kept blocks
        self.kept_bytes = 0
        self._kept: dict[int, list[Block]] = {}
        self._used: Counter[int] = Counter()  # how many blocks of each size are in use
        self._lock = threading.Lock()  # guards all fields above, because any thread may borrow a block
        self._taken_back: deque[Block] = deque()  # that are not kept yet

    def take(self, size_bytes: int) -> Block:
        """Returns a block of at least `size_bytes`, which counts as in use until `give_back`.

        Raises OutOfMemory if the block does not fit the limit, or if the allocator has no memory for it.
        """
        size_class = self._size_class(size_bytes)
        with self._lock:
            self._keep_taken_back()
            kept = self._kept.get(size_class)
            if not kept:
                self._make_room(size_class, size_bytes)
                return self._use(self._allocated(size_class))
            block = kept.pop()
            self.kept_bytes -= size_class
            self._used[size_class] += 1
        return block

    def lend(self, size_bytes: int) -> Block:
        """Returns a block of at least `size_bytes` for `adopt`. Any thread. Raises what `new_block` raises."""
        size_class = self._size_class(size_bytes)
        with self._lock:
            self._keep_taken_back()
            kept = self._kept.get(size_class)
            if kept:
                self.kept_bytes -= size_class
                self._held_bytes -= size_class
                return kept.pop()
        return self._new_block(size_class)

    def adopt(self, lent: Block, size_bytes: int) -> Block:
        """Returns a lent block, which counts as in use from now on. Raises OutOfMemory if it does not fit the limit."""
        with self._lock:
            self._make_room(lent.size_bytes, size_bytes)
            return self._use(lent)

    def take_back(self, lent: Block) -> None:
        """Keeps a lent block, if there is room for it. Any thread; takes no lock, so that a finaliser may call this."""
        self._taken_back.append(lent)

    def give_back(self, block: Block) -> None:
        """Keeps a block that was in use for later requests, or frees it."""
        with self._lock:
            counted_as = self._counted_as(block.size_bytes)
            self._used[counted_as] -= 1
            if not self._used[counted_as]:
                del self._used[counted_as]
            if self._may_keep(block):
                self._keep(block)
            else:
                self._held_bytes -= block.size_bytes
                self._free(block)

    def counts(self) -> list[BlockCount]:
        """Returns the blocks by size; above the largest kept ones, by the next power of two. Any thread."""
        with self._lock:
            self._keep_taken_back()
            free = {size_bytes: len(blocks) for size_bytes, blocks in self._kept.items()}
            live = self._used.copy()
        return [BlockCount(size, free.get(size, 0), live[size]) for size in sorted(free.keys() | live.keys())]

    def clear(self) -> None:
        """Frees the kept blocks."""
        with self._lock:
            self._keep_taken_back()
            self._clear()

    def _size_class(self, size_bytes: int) -> int:
        """Rounds a size up to a size class. Between a power of two and the next there are four size classes.

        So a block is larger than asked for by at most a quarter or `unit_bytes`, whichever is more.
        """
        unit_bytes = self._unit_bytes
        size_bytes = max(size_bytes, unit_bytes)
        step = max(1 << max(size_bytes.bit_length() - 3, 0), unit_bytes) if size_bytes <= self._largest_bytes else 1
        return -(-size_bytes // step) * step

    def _counted_as(self, size_bytes: int) -> int:
        """Returns the size under which a block in use is counted, so that those of few sizes are counted apart."""
        return size_bytes if size_bytes <= self._largest_bytes else 1 << (size_bytes - 1).bit_length()

    # ---- under the lock ----

    def _may_keep(self, block: Block) -> bool:
        return block.size_bytes <= self._largest_bytes and self.kept_bytes + block.size_bytes <= self._cached_bytes

    def _keep(self, block: Block) -> None:
        self.kept_bytes += block.size_bytes
        self._kept.setdefault(block.size_bytes, []).append(block)

    def _keep_taken_back(self) -> None:
        while self._taken_back:
            block = self._taken_back.popleft()
            if self._may_keep(block) and self._held_bytes + block.size_bytes <= self._limit_bytes:
                self._held_bytes += block.size_bytes
                self._keep(block)

    def _make_room(self, size_class: int, size_bytes: int) -> None:
        """Frees all kept blocks if a new block does not fit the limit. Raises OutOfMemory if it still does not fit."""
        if self._held_bytes + size_class > self._limit_bytes:
            self._clear()
        if self._held_bytes + size_class > self._limit_bytes:
            raise OutOfMemory(
                f"the device has no memory for {size_bytes} bytes: {self._held_bytes} of {self._limit_bytes} are in use"
            )

    def _allocated(self, size_class: int) -> Block:
        """Allocates a block, if need be in place of the kept ones. Raises OutOfMemory."""
        try:
            return self._new_block(size_class)
        except OutOfMemory:
            if not self.kept_bytes:
                raise
        self._clear()
        return self._new_block(size_class)

    def _use(self, block: Block) -> Block:
        self._held_bytes += block.size_bytes
        self._used[self._counted_as(block.size_bytes)] += 1
        return block

    def _clear(self) -> None:
        self._held_bytes -= self.kept_bytes
        self.kept_bytes = 0
        for blocks in self._kept.values():
            for block in blocks:
                self._free(block)
        self._kept.clear()
