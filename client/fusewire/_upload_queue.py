"""Chunks on their way from the threads that copy them to the I/O thread: never more than so many bytes at once."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import NamedTuple

from fusewire_protos.chunks import encode_chunk


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


class _Chunk(NamedTuple):
    """A chunk as it travels, and how many bytes of the value it holds."""

    message: bytes
    size_bytes: int


class UploadQueue:
    """The chunks of one upload. None ends them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, backlog: Backlog) -> None:
        self._loop = loop
        self._backlog = backlog
        self._chunks: deque[_Chunk | None] = deque()
        self._offset = 0  # of the chunk put next; the copying thread's alone
        self._arrived = asyncio.Event()
        self._is_dropped = False
        self._carried_bytes = 0  # of the chunk taken last; the I/O thread's alone

    # ---- the thread that copies ----

    def put(self, chunk: memoryview) -> None:
        """Waits for room, then copies the chunk."""
        if self._is_dropped or not self._backlog.add(chunk.nbytes):
            return
        self._chunks.append(_Chunk(encode_chunk(self._offset, chunk), chunk.nbytes))
        self._offset += chunk.nbytes
        self._tell()

    def finish(self) -> None:
        self._chunks.append(None)
        self._tell()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._arrived.set)

    # ---- the I/O thread ----

    async def next(self) -> bytes | None:
        """The message of the next chunk; the one before counts as queued until now."""
        self._backlog.take(self._carried_bytes)
        self._carried_bytes = 0
        while not self._chunks:
            self._arrived.clear()
            if not self._chunks:
                await self._arrived.wait()
        chunk = self._chunks.popleft()
        if chunk is None:
            return None
        self._carried_bytes = chunk.size_bytes
        return chunk.message

    async def drain(self) -> None:
        """Nobody carries the chunks any more: gives back their room until the last has come."""
        self._is_dropped = True
        while await self.next() is not None:
            pass
