"""Keeps the lines of the user's code that recorded the ops. They stay in the client, for its error messages."""

from __future__ import annotations

import sys
from bisect import bisect_right
from types import FrameType
from typing import NamedTuple

_PACKAGE, *_ = __name__.split(".")
_KEPT = 1 << 16


class SourceLine(NamedTuple):
    """A line of the user's code. `is_exact` is False if the line recorded an op before the op that was looked up."""

    file: str
    line: int
    is_exact: bool = True

    def __str__(self) -> str:
        relation = "recorded at" if self.is_exact else "recorded at or after"
        return f"{relation} {self.file}:{self.line}"


class SourceLines:
    """Source lines by op number, ascending. Holds at most 65,536 lines: if there are more, it drops the older half."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._lines: list[SourceLine] = []

    def note(self, number: int, source_line: SourceLine) -> None:
        if self._numbers and self._numbers[-1] >= number:
            return
        self._numbers.append(number)
        self._lines.append(source_line)
        if len(self._numbers) > _KEPT:
            del self._numbers[: _KEPT // 2]
            del self._lines[: _KEPT // 2]

    def find(self, number: int) -> SourceLine | None:
        """Returns the line that recorded op `number`.

        If this line is not known, returns the line of the last earlier op whose line is known, or None.
        """
        index = bisect_right(self._numbers, number) - 1
        if index < 0:
            return None
        return self._lines[index]._replace(is_exact=self._numbers[index] == number)


def user_source_line() -> SourceLine:
    """Returns the innermost line on this thread's stack that lies outside the client's own modules."""
    frame = sys._getframe(1)  # the documented way to get the frames of the callers
    while _is_internal(frame) and frame.f_back is not None:
        frame = frame.f_back
    return SourceLine(frame.f_code.co_filename, frame.f_lineno)


def _is_internal(frame: FrameType) -> bool:
    """Returns whether the frame runs the client's own code. The examples count as users' code."""
    module = str(frame.f_globals.get("__name__", ""))
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}._")
