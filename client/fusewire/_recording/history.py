"""The last items of a sequence that grows at its end, as one array whenever it is asked for."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from fusewire._recording.tape import Integers

_ROOM = 4  # times what is kept: so seldom does it move


class History(NamedTuple):
    """A history never changes: one that follows it is written behind its end, where it does not look.

    So the one before is as good as ever until another one follows it.
    """

    room: Integers
    end: int  # in the room
    most: int  # items that are kept

    @classmethod
    def empty(cls, most: int) -> Self:
        return cls(np.empty(_ROOM * most, np.int64), 0, most)

    @property
    def items(self) -> Integers:
        """As many as are kept."""
        return self.room[max(self.end - self.most, 0) : self.end]

    def followed_by(self, items: Integers) -> Self:
        """With `items` behind its last; nearly always in the same room."""
        end = self.end + len(items)
        if end > len(self.room):
            return self._in_a_new_room(items)
        self.room[self.end : end] = items
        return self._replace(end=end)

    def _in_a_new_room(self, items: Integers) -> Self:
        kept = np.concatenate((self.items, items))[-self.most :]
        room = np.empty_like(self.room)
        room[: len(kept)] = kept
        return self._replace(room=room, end=len(kept))
