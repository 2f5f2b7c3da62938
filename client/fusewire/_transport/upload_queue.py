"""Chunks on their way from the threads that copy them to the I/O thread: never more than so many bytes at once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Hashable
from contextlib import suppress
from typing import NamedTuple

from fusewire_protos.chunks import encode_chunk


class ByteBudget:
    """How many bytes of one session wait for the connection. Who adds more than there is room for waits.

    They are counted upload by upload: an interrupt may come between the counting of a chunk and its queueing, so what
    is counted for an upload is given back as a whole at its end.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.RLock()  # whose own entering no signal can split, as it can the condition's
        self._changed = threading.Condition(self._lock)
        # Guarded by the lock.
        self._queued_bytes: Counter[Hashable] = Counter()
        self._has_ended = False

    def add(self, upload: Hashable, size_bytes: int) -> bool:
        """Waits for room; a chunk larger than all of it waits to be alone. False once nothing is carried any more."""
        with self._lock:
            self._changed.wait_for(lambda: self._has_ended or self._admits(size_bytes))
            if not self._has_ended:
                self._queued_bytes[upload] += size_bytes
            return not self._has_ended

    def take(self, upload: Hashable, size_bytes: int) -> None:
        """So many bytes have gone."""
        with self._lock:
            self._queued_bytes[upload] -= size_bytes
            self._changed.notify_all()

    def drop(self, upload: Hashable) -> None:
        """No more come of it, and none waits."""
        with self._lock:
            del self._queued_bytes[upload]
            self._changed.notify_all()

    def end(self) -> None:
        """Nobody waits any more."""
        with self._lock:
            self._has_ended = True
            self._changed.notify_all()

    def _admits(self, size_bytes: int) -> bool:
        queued_bytes = self._queued_bytes.total()
        return not queued_bytes or queued_bytes + size_bytes <= self._limit_bytes


class _Chunk(NamedTuple):
    """A chunk as it travels, and how many bytes of the value it holds."""

    message: bytes
    size_bytes: int


class UploadQueue:
    """The chunks of one upload. None ends them, and stays."""

    def __init__(self, loop: asyncio.AbstractEventLoop, budget: ByteBudget) -> None:
        self._loop = loop
        self._budget = budget
        self._chunks: deque[_Chunk | None] = deque()
        self._offset = 0  # of the chunk put next; the copying thread's alone
        self._arrived = asyncio.Event()
        self._is_dropped = False
        self._carried_bytes = 0  # of the chunk taken last; the I/O thread's alone

    # ---- the thread that copies ----

    def put(self, chunk: memoryview) -> None:
        """Waits for room, then copies the chunk."""
        if self._is_dropped or not self._budget.add(self, chunk.nbytes):
            return
        self._chunks.append(_Chunk(encode_chunk(self._offset, chunk), chunk.nbytes))
        self._offset += chunk.nbytes
        self._tell()

    def finish(self) -> None:
        """No more come, nor did any of whose putting an exception came. May be begun again."""
        self._chunks.append(None)
        self._tell()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._arrived.set)

    # ---- the I/O thread ----

    async def next(self) -> bytes | None:
        """The message of the next chunk; the one before counts as queued until now."""
        self._budget.take(self, self._carried_bytes)
        self._carried_bytes = 0
        while not self._chunks:
            self._arrived.clear()
            if not self._chunks:
                await self._arrived.wait()
        chunk = self._chunks[0]
        if chunk is None:
            self._budget.drop(self)
            return None
        self._chunks.popleft()
        self._carried_bytes = chunk.size_bytes
        return chunk.message

    async def drain(self) -> None:
        """Nobody carries the chunks any more: gives back their room until the last has come."""
        self._is_dropped = True
        while await self.next() is not None:
            pass
