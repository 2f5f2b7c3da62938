"""The lines of the user's code that recorded the ops. They stay in the client, which adds them to error messages."""

from __future__ import annotations

import sys
from bisect import bisect_right
from types import FrameType
from typing import NamedTuple

_PACKAGE, *_ = __name__.split(".")
_KEPT = 1 << 16


class SourceLine(NamedTuple):
    """A line of the user's code. `is_exact`: it recorded the op that was looked up, not an earlier one."""

    file: str
    line: int
    is_exact: bool = True

    def __str__(self) -> str:
        relation = "recorded at" if self.is_exact else "recorded at or after"
        return f"{relation} {self.file}:{self.line}"


class SourceLines:
    """Source lines by op number, ascending. Beyond 65,536 lines the older half is dropped."""

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
        """The line of op `number`, or else of the last op before it that has one. None if there is none."""
        index = bisect_right(self._numbers, number) - 1
        if index < 0:
            return None
        return self._lines[index]._replace(is_exact=self._numbers[index] == number)


def user_source_line() -> SourceLine:
    """The innermost line on this thread's stack that lies outside the client's own modules."""
    frame = sys._getframe(1)  # the documented way to one's callers
    while _is_internal(frame) and frame.f_back is not None:
        frame = frame.f_back
    return SourceLine(frame.f_code.co_filename, frame.f_lineno)


def _is_internal(frame: FrameType) -> bool:
    """Whether the line is in a private module of the client; the examples are users of it as others are."""
    module = str(frame.f_globals.get("__name__", ""))
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}._")
