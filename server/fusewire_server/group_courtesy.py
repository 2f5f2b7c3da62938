"""Lets a group of processes give way to others: with the least share of one processor, or with a small one of any.

Where Linux groups processes by their sessions, a priority counts within the group alone, and a group of one process has
the share of all the others' group. So the group's own priority is lowered too. Other than a process's, it may be raised
again by whoever lowered it.

The lower it is, the sooner others are let in. Linux lets in at once only whom it owes time. A thread that has run for a
while, has slept for a moment and wakes is owed none until the group has had its share of that while; where that is not
over yet, Linux looks again at the next tick of its clock, up to four milliseconds later. A group that keeps to one
processor has others find that out but once: they wake where they ran last, or where nobody runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

AGAIN_S = 0.2  # Linux lets users change groups ten times a second, all of them together


class Share(NamedTuple):
    """What a group may have of processors that others want."""

    niceness: int  # as for nice(2)
    is_of_one_processor: bool


LEAST = Share(19, is_of_one_processor=True)
SMALL = Share(10, is_of_one_processor=False)


class GroupCourtesy:
    """Of the group whose session `leader` leads: it and what it has started. Owned by the loop thread."""

    def __init__(self, leader: int, share: Share) -> None:
        self._leader = leader
        self._share = share
        self._again: asyncio.TimerHandle | None = None
        self._set()

    def change(self, share: Share) -> None:
        if share != self._share:
            self._share = share
            self._set()

    def end(self) -> None:
        """The group's leader is gone, and its number may be another's."""
        if self._again is not None:
            self._again.cancel()

    def _set(self) -> None:
        self._place()
        self._weigh()

    def _place(self) -> None:
        """Each process hands on to those that it starts where it may run."""
        if not hasattr(os, "sched_setaffinity"):  # only Linux has it
            return
        ours = os.sched_getaffinity(0)
        processors = {max(ours)} if self._share.is_of_one_processor else ours
        for process in _with_descendants(self._leader):
            with suppress(OSError):  # it has ended
                os.sched_setaffinity(process, processors)

    def _weigh(self) -> None:
        self.end()
        try:
            group_file(self._leader).write_text(str(self._share.niceness), encoding="ascii")
        except BlockingIOError:  # too often
            self._again = asyncio.get_running_loop().call_later(AGAIN_S, self._weigh)
        except OSError:  # there are no groups here, or this one has no priority of its own, or it is no more
            self._again = None


def group_file(process: int) -> Path:
    """Tells which group a process is in, and its priority."""
    return Path(f"/proc/{process}/autogroup")


def _with_descendants(process: int) -> Iterator[int]:
    """As far as their first threads have started them, which those of a planner's worker and of compilers have."""
    yield process
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    except OSError:  # it has ended, or the system does not tell
        return
    for child in children.split():
        yield from _with_descendants(int(child))
