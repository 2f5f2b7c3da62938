"""Where in the user's code an op was recorded. SourceLines stay in the client; errors are told with them."""

from __future__ import annotations

import sys
from bisect import bisect_right
from types import FrameType
from typing import NamedTuple

_PACKAGE = __package__
_KEPT = 1 << 16


class SourceLine(NamedTuple):
    """A line of the user's code; `is_exact` if it recorded the very op asked for, else an earlier one."""

    file: str
    line: int
    is_exact: bool = True

    def __str__(self) -> str:
        relation = "recorded at" if self.is_exact else "recorded at or after"
        return f"{relation} {self.file}:{self.line}"


class SourceLines:
    """Noted positions by op number, ascending; the oldest are forgotten."""

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
        """The source_line of op `number`, or of the last noted one before it."""
        index = bisect_right(self._numbers, number) - 1
        if index < 0:
            return None
        return self._lines[index]._replace(is_exact=self._numbers[index] == number)


def user_source_line() -> SourceLine:
    """The innermost line on this thread's stack that is not of this package."""
    frame: FrameType | None = sys._getframe(1)  # the documented way to one's callers
    while frame is not None and frame.f_globals.get("__package__") == _PACKAGE and frame.f_back is not None:
        frame = frame.f_back
    assert frame is not None
    return SourceLine(frame.f_code.co_filename, frame.f_lineno)
