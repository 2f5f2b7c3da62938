"""Queues for the chunks of uploads. A user's thread copies chunks into a queue, and the I/O thread sends the chunks.

The bytes in all queues of a session are limited. A connection may break before the server has an upload. If the upload
fits the limit, its queue keeps all its chunks until then, and the user's thread need not wait. A larger upload keeps
the user's thread, which then queues it anew. Over local calls such an upload is not copied: as its thread waits anyway,
it is sent from where it is.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import NamedTuple

from fusewire_protos.chunks import chunk_head, encode_chunk


class ByteBudget:
    """Limits the bytes of one session's uploads that wait for the connection. A thread that adds more waits for room.

    The bytes are counted for each upload separately. An interrupt may come after a chunk is counted and before the
    chunk is queued. So the end of an upload gives back all bytes that are still counted for the upload.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._lock = threading.RLock()  # a signal can interrupt entering a condition, but not entering a lock
        self._changed = threading.Condition(self._lock)
        # The lock guards the fields below.
        self._queued_bytes: Counter[Hashable] = Counter()
        self._has_ended = False

    def add(self, upload: Hashable, size_bytes: int) -> bool:
        """Waits for room and counts the bytes. A chunk larger than the limit waits until no bytes are counted.

        Returns False, and counts nothing, if the connection has ended.
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
        """Gives back all bytes that are still counted for an upload that has ended."""
        with self._lock:
            del self._queued_bytes[upload]
            self._changed.notify_all()

    def end(self) -> None:
        """Notes that the session has ended, and wakes the threads that wait."""
        with self._lock:
            self._has_ended = True
            self._changed.notify_all()

    def _admits(self, size_bytes: int) -> bool:
        queued_bytes = self._queued_bytes.total()
        return not queued_bytes or queued_bytes + size_bytes <= self.limit_bytes


Pieces = tuple[bytes | memoryview, ...]  # of a message


class _Chunk(NamedTuple):
    """An encoded chunk, and how many bytes of the value are counted for it."""

    message: Pieces
    counted_bytes: int


class UploadQueue:
    """The chunks of one upload of `size_bytes`. None marks the end and is never taken out."""

    def __init__(self, loop: asyncio.AbstractEventLoop, budget: ByteBudget, size_bytes: int) -> None:
        self._loop = loop
        self._budget = budget
        self._size_bytes = size_bytes
        self.is_kept = size_bytes <= budget.limit_bytes  # whether all chunks are kept until the server has them
        self._chunks: deque[_Chunk | None] = deque()
        self._arrived = asyncio.Event()
        self._is_dropped = False
        self._is_given_up = False
        self._is_cut = False  # whether the user's thread must copy the upload anew
        self._has_ended = threading.Event()
        # Only the I/O thread uses the field below.
        self._sent: list[_Chunk] = []  # all chunks sent, or if they are not kept the last one

    # ---- the thread that copies ----

    def fill(self, chunks: Sequence[memoryview], *, is_copied: bool = True) -> None:
        """Queues copies of the chunks, for which it waits for room; or the chunks themselves.

        Stops if the upload or the session has ended.
        """
        offset = 0
        if self.is_kept and not self._budget.add(self, self._size_bytes):
            return
        for chunk in chunks:
            if self._is_dropped or not (self.is_kept or not is_copied or self._budget.add(self, chunk.nbytes)):
                return
            if is_copied:
                queued = _Chunk((encode_chunk(offset, chunk),), chunk.nbytes)
            else:
                queued = _Chunk((chunk_head(offset, chunk.nbytes), chunk), 0)
            self._chunks.append(queued)
            offset += chunk.nbytes
            self._tell()

    def finish(self) -> None:
        """Ends the upload after the chunks that are queued."""
        self._chunks.append(None)
        self._tell()

    def give_up(self) -> None:
        """Ends the upload before the next chunk: an exception has interrupted one of the calls here."""
        self._is_given_up = True
        self._tell()

    def is_cut(self) -> bool:
        """Waits until an upload that is not kept has ended. Returns whether it must be copied and sent anew."""
        if not self.is_kept:
            self._has_ended.wait()
        return self._is_cut

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._arrived.set)

    # ---- the I/O thread ----

    async def next(self) -> Pieces | None:
        """Returns the message of the next chunk in pieces, or None at the end.

        A chunk that is not kept counts as queued until the next call.
        """
        if not self.is_kept:
            self._forget_sent()
        while not self._chunks and not self._is_given_up:
            self._arrived.clear()
            if not self._chunks and not self._is_given_up:
                await self._arrived.wait()
        if self._is_given_up:
            return None
        chunk = self._chunks[0]
        if chunk is None:
            return None
        self._chunks.popleft()
        self._sent.append(chunk)
        return chunk.message

    def send_again(self) -> None:
        """Lets `next` begin with the first chunk again. Does nothing if none was sent. Otherwise they must be kept."""
        assert self.is_kept or not self._sent, "what was not kept cannot be sent again"
        self._chunks.extendleft(reversed(self._sent))
        self._sent.clear()

    def end(self, *, is_cut: bool) -> None:
        """Lets the user's thread go on. `is_cut`: it must copy the upload anew."""
        self._is_dropped = True
        self._is_cut = is_cut
        self._has_ended.set()

    async def drain(self) -> None:
        """Discards the chunks that are left until the user's thread queues no more, and gives back all its room."""
        while await self.next() is not None:
            pass
        self._sent.clear()
        self._budget.drop(self)

    def _forget_sent(self) -> None:
        self._budget.take(self, sum(chunk.counted_bytes for chunk in self._sent))
        self._sent.clear()
