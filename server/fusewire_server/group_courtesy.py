"""Lets a group of processes give way to others: with the least share of a busy processor, or with a small one.

Where Linux groups processes by their sessions, a priority counts within the group alone, and a group of one process has
the share of all the others' group. So the group's own priority is lowered too. Other than a process's, it may be raised
again by whoever lowered it.

The lower it is, the sooner others are let in. Linux lets in at once only whom it owes time. A thread that has run for a
while, has slept for a moment and wakes is owed none until the group has had its share of that while; where that is not
over yet, Linux looks again at the next tick of its clock, up to four milliseconds later.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

LEAST, SMALL = 19, 10  # as for nice(2)
AGAIN_S = 0.2  # Linux lets users change groups ten times a second, all of them together


class GroupCourtesy:
    """Of the group whose session `leader` leads. Owned by the loop thread."""

    def __init__(self, leader: int, niceness: int) -> None:
        self._file = group_file(leader)
        self._niceness = niceness
        self._again: asyncio.TimerHandle | None = None
        self._set()

    def change(self, niceness: int) -> None:
        if niceness != self._niceness:
            self._niceness = niceness
            self._set()

    def end(self) -> None:
        """The group's leader is gone, and its number may be another's."""
        if self._again is not None:
            self._again.cancel()

    def _set(self) -> None:
        self.end()
        try:
            self._file.write_text(str(self._niceness), encoding="ascii")
        except BlockingIOError:  # too often
            self._again = asyncio.get_running_loop().call_later(AGAIN_S, self._set)
        except OSError:  # there are no groups here, or this one has no priority of its own, or it is no more
            self._again = None


def group_file(process: int) -> Path:
    """Tells which group a process is in, and its priority."""
    return Path(f"/proc/{process}/autogroup")
