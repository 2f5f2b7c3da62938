"""Keeps the last items of a growing sequence, always readable as one contiguous array."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from fusewire._recording.tape import Integers

_CAPACITY = 4  # times the number of kept items; a larger buffer means that items are moved less often


class History(NamedTuple):
    """A history does not change when it gets a successor, which writes into the same buffer, but only behind its end.

    A second successor of a history writes over the items of the first successor, which must not be used any more.
    """

    buffer: Integers
    end: int  # index in the buffer
    most: int  # items that are kept

    @classmethod
    def empty(cls, most: int) -> Self:
        return cls(np.empty(_CAPACITY * most, np.int64), 0, most)

    @property
    def items(self) -> Integers:
        """Returns the last `most` items, or fewer if there have been fewer."""
        return self.buffer[max(self.end - self.most, 0) : self.end]

    def followed_by(self, items: Integers) -> Self:
        """Returns the history with `items` added at its end, nearly always in the same buffer."""
        end = self.end + len(items)
        if end > len(self.buffer):
            return self._in_new_buffer(items)
        self.buffer[self.end : end] = items
        return type(self)(self.buffer, end, self.most)

    def _in_new_buffer(self, items: Integers) -> Self:
        kept = np.concatenate((self.items, items))[-self.most :]
        buffer = np.empty_like(self.buffer)
        buffer[: len(kept)] = kept
        return self._replace(buffer=buffer, end=len(kept))
