"""Fills the memory of a large value with its chunks, which may be received straight to their places."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from fusewire_protos.chunks import check_order, decode_chunk, decode_head


class Filling:
    """Fills `memory` from its beginning."""

    def __init__(self, memory: memoryview) -> None:
        self.filled_bytes = 0
        self._bytes = np.frombuffer(memory, np.uint8)
        self._memory = memoryview(memory).cast("B")
        self._placed: deque[tuple[int, memoryview]] = deque()  # with their offsets; not taken yet

    def place(self, first: memoryview, message_bytes: int) -> tuple[int, memoryview] | None:
        """Returns where the data of a chunk begin, and the memory for them: a `Place` of local calls."""
        try:
            offset, position = decode_head(first, message_bytes)
        except ValueError:
            return None  # `take` refuses it
        end = offset + message_bytes - position
        if end > len(self._memory):
            return None
        target = self._memory[offset:end]
        self._placed.append((offset, target))
        return position, target

    def take(self, message: Any) -> int:
        """Takes the next chunk, or the memory that `place` gave for it. Returns how many bytes of data it has.

        Raises ChunkOrderError if the chunk does not begin where the last one ended, and ValueError if it is no chunk,
        or longer than what is left.
        """
        start = self.filled_bytes
        if self._placed and message is self._placed[0][1]:
            offset, target = self._placed.popleft()
            check_order(offset, start)
            count = len(target)
        else:
            chunk = decode_chunk(message, start)
            count = len(chunk)
            if start + count > len(self._memory):
                raise ValueError(f"more than the {len(self._memory)} bytes declared")
            # NumPy lets other threads run during the copy; an assignment to a memoryview would not.
            np.copyto(self._bytes[start : start + count], np.frombuffer(chunk, np.uint8))
        self.filled_bytes = start + count
        return count
