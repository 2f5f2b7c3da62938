"""On which processors a process and those that it has started may run: on one of ours, or on all.

One that computes for long and wanders from processor to processor is in the way of threads that hand work to each
other: they wake where they ran last, and Linux lets one in at once only if it owes it time. A thread that has run for a
while, has slept for a moment and wakes is owed none until the other has had its share of that while; where that is not
over yet, Linux looks again at the next tick of its clock, up to four milliseconds later. Beside one that stays where it
is, they come to run elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def let_run(process: int, *, anywhere: bool) -> None:
    """Those that it starts later run where it does. A process that has ended is left alone."""
    if not hasattr(os, "sched_setaffinity"):  # only Linux has it
        return
    ours = os.sched_getaffinity(0)
    processors = ours if anywhere else {max(ours)}
    for each in _with_descendants(process):
        with suppress(OSError):  # it has ended
            os.sched_setaffinity(each, processors)


def _with_descendants(process: int) -> Iterator[int]:
    """As far as first threads have started them, which is so of a planner's worker and of compilers."""
    yield process
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    except OSError:  # it has ended, or the system does not tell
        return
    for child in children.split():
        yield from _with_descendants(int(child))
