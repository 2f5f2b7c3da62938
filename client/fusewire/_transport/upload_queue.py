"""Queues of chunks, from the threads that copy uploads to the I/O thread that sends them, bounded in bytes."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Hashable
from contextlib import suppress
from typing import NamedTuple

from fusewire_protos.chunks import encode_chunk


class ByteBudget:
    """Bounds the bytes of one session's uploads that wait for the connection. Adding more waits for room.

    Bytes are counted for each upload apart. An interrupt may come between counting a chunk and queueing it, so the end
    of an upload gives back all that is still counted for it.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.RLock()  # entering the lock itself is atomic for signals; entering the condition is not
        self._changed = threading.Condition(self._lock)
        # Guarded by the lock.
        self._queued_bytes: Counter[Hashable] = Counter()
        self._has_ended = False

    def add(self, upload: Hashable, size_bytes: int) -> bool:
        """Waits for room and counts the bytes. More bytes than the limit wait until the queue is empty.

        False once the connection has ended: nothing is counted then.
        """
        with self._lock:
            self._changed.wait_for(lambda: self._has_ended or self._admits(size_bytes))
            if not self._has_ended:
                self._queued_bytes[upload] += size_bytes
            return not self._has_ended

    def take(self, upload: Hashable, size_bytes: int) -> None:
        """Gives back bytes that were sent."""
        with self._lock:
            self._queued_bytes[upload] -= size_bytes
            self._changed.notify_all()

    def drop(self, upload: Hashable) -> None:
        """Gives back all bytes that are still counted for an upload, which has ended."""
        with self._lock:
            del self._queued_bytes[upload]
            self._changed.notify_all()

    def end(self) -> None:
        """Notes that the connection has ended, and wakes the threads that wait."""
        with self._lock:
            self._has_ended = True
            self._changed.notify_all()

    def _admits(self, size_bytes: int) -> bool:
        queued_bytes = self._queued_bytes.total()
        return not queued_bytes or queued_bytes + size_bytes <= self._limit_bytes


class _Chunk(NamedTuple):
    """The encoded chunk, and how many bytes of the value it holds."""

    message: bytes
    size_bytes: int


class UploadQueue:
    """The chunks of one upload. None marks the end and is never taken out."""

    def __init__(self, loop: asyncio.AbstractEventLoop, budget: ByteBudget) -> None:
        self._loop = loop
        self._budget = budget
        self._chunks: deque[_Chunk | None] = deque()
        self._offset = 0  # of the next chunk to be put; used by the copying thread alone
        self._arrived = asyncio.Event()
        self._is_dropped = False
        self._carried_bytes = 0  # of the chunk taken last; used by the I/O thread alone

    # ---- the thread that copies ----

    def put(self, chunk: memoryview) -> None:
        """Waits for room, then copies the chunk."""
        if self._is_dropped or not self._budget.add(self, chunk.nbytes):
            return
        self._chunks.append(_Chunk(encode_chunk(self._offset, chunk), chunk.nbytes))
        self._offset += chunk.nbytes
        self._tell()

    def finish(self) -> None:
        """Ends the upload. May be called again if an exception has interrupted it."""
        self._chunks.append(None)
        self._tell()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._arrived.set)

    # ---- the I/O thread ----

    async def next(self) -> bytes | None:
        """The message of the next chunk, or None at the end. The chunk before it counts as queued until this call."""
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
        """Discards chunks until the upload ends, because its connection has failed."""
        self._is_dropped = True
        while await self.next() is not None:
            pass
