"""Chunks on their way from the threads that copy them to the I/O thread: never more than so many bytes at once."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress


class Backlog:
    """How many bytes of one session wait for the connection. Who adds more than there is room for waits."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._changed = threading.Condition()
        # Guarded by the condition.
        self._queued_bytes = 0
        self._has_ended = False

    def add(self, size_bytes: int) -> bool:
        """Waits for room; a chunk larger than all of it waits to be alone. False once nothing is carried any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or self._admits(size_bytes))
            if not self._has_ended:
                self._queued_bytes += size_bytes
            return not self._has_ended

    def take(self, size_bytes: int) -> None:
        """So many bytes have gone."""
        with self._changed:
            self._queued_bytes -= size_bytes
            self._changed.notify_all()

    def end(self) -> None:
        """Nobody waits any more."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _admits(self, size_bytes: int) -> bool:
        return not self._queued_bytes or self._queued_bytes + size_bytes <= self._limit_bytes


class UploadQueue:
    """The chunks of one upload. None ends them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, backlog: Backlog) -> None:
        self._loop = loop
        self._backlog = backlog
        self._chunks: deque[memoryview | None] = deque()
        self._arrived = asyncio.Event()
        self._is_dropped = False
        self._carried_bytes = 0  # of the chunk taken last; the I/O thread's alone

    # ---- the thread that copies ----

    def put(self, chunk: memoryview) -> None:
        """Waits for room."""
        if self._is_dropped or not self._backlog.add(chunk.nbytes):
            return
        self._chunks.append(chunk)
        self._tell()

    def finish(self) -> None:
        self._chunks.append(None)
        self._tell()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._arrived.set)

    # ---- the I/O thread ----

    async def next(self) -> memoryview | None:
        """The next chunk; the one before counts as queued until now."""
        self._backlog.take(self._carried_bytes)
        self._carried_bytes = 0
        while not self._chunks:
            self._arrived.clear()
            if not self._chunks:
                await self._arrived.wait()
        chunk = self._chunks.popleft()
        if chunk is not None:
            self._carried_bytes = chunk.nbytes
        return chunk

    async def drain(self) -> None:
        """Nobody carries the chunks any more: gives back their room until the last has come."""
        self._is_dropped = True
        while await self.next() is not None:
            pass
