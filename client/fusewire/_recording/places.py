"""Numbers the places in the user's code that record ops, so that a tape keeps one integer for the place of an op.

A place is a code object and the offset of an instruction in it. The code object is kept, so that no other object gets
its address. The line of a place is looked up only when an error or a user asks for it.
"""

from __future__ import annotations

from itertools import count
from types import CodeType, FrameType
from typing import NamedTuple

from fusewire._recording.source_lines import SourceLine, is_internal

NOT_KNOWN = 0  # the number of no place
INTERNAL = -1  # stands for all places in code of the client and of PyTorch
OPS_WITH_PLACES = 1 << 16  # of each recorder, the last ones
_MOST_PLACES = 1 << 14


class Place(NamedTuple):
    """An instruction of some code."""

    code: CodeType
    offset_bytes: int

    def source_line(self) -> SourceLine | None:
        """Returns the line that the instruction belongs to; None if the compiler of the code has noted none."""
        lines = self.code.co_lines()
        line = next((line for start, end, line in lines if start <= self.offset_bytes < end), None)
        return None if line is None else SourceLine(self.code.co_filename, line)


class Places:
    """The places of this process by number. Holds at most `most` places: if there are more, it drops the older half."""

    def __init__(self, most: int = _MOST_PLACES) -> None:
        self.generation = 0  # changes when places are dropped, whose code objects may then be gone
        self._most = most
        self._numbers = count(NOT_KNOWN + 1)
        self._kept: dict[tuple[int, int], tuple[int, Place]] = {}  # by the code's address and the offset
        self._places: dict[int, Place] = {}

    def number_at(self, frame: FrameType) -> int:
        """Returns the number of the place that `frame` executes, or INTERNAL."""
        place = Place(frame.f_code, frame.f_lasti)
        key = (id(place.code), place.offset_bytes)
        known = self._kept.get(key)
        if known is None:
            number = INTERNAL if is_internal(frame) else next(self._numbers)
            known = self._kept.setdefault(key, (number, place))  # another thread may have been here first
            self._places.setdefault(*known)
            self._drop_old()
        return known[0]

    def find(self, number: int) -> Place | None:
        return self._places.get(number)

    def _drop_old(self) -> None:
        if len(self._kept) > self._most:
            for key in [*self._kept][: self._most // 2]:
                number, _ = self._kept.pop(key, (NOT_KNOWN, None))
                self._places.pop(number, None)
            self.generation += 1


places = Places()


def source_line(number: int) -> SourceLine | None:
    """Returns the line of the place with this number; None if the line is not known."""
    place = places.find(number)
    return None if place is None else place.source_line()
