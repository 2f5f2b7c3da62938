"""Finds the lines of the user's code that record ops. They stay in the client, for its error messages."""

from __future__ import annotations

import sys
from types import FrameType
from typing import NamedTuple

_PACKAGE, *_ = __name__.split(".")
_LIBRARIES = (f"{_PACKAGE}._", f"{_PACKAGE}_torch.", "torch.")


class SourceLine(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"recorded at {self.file}:{self.line}"


def user_source_line() -> SourceLine:
    """Returns the innermost line on this thread's stack that lies outside the client's own modules and PyTorch's."""
    frame = sys._getframe(1)  # the documented way to get the frames of the callers
    while is_internal(frame) and frame.f_back is not None:
        frame = frame.f_back
    return SourceLine(frame.f_code.co_filename, frame.f_lineno)


def is_internal(frame: FrameType) -> bool:
    """Returns whether the frame runs code of the client, its device or PyTorch. The examples count as users' code."""
    module = str(frame.f_globals.get("__name__", ""))
    return module in {_PACKAGE, "torch"} or module.startswith(_LIBRARIES)
