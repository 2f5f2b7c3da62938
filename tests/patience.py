"""Bounds for waits, which only a hang exceeds: a busy machine makes a test slower, and does not fail it.

A test that polls has a `Patience`. It counts the time in which this process or one of its descendants ran, or none of
them wanted to run, and does not count the time in which they wanted to and other processes had the processors.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

HANGS_S = 600.0  # bounds a wait that cannot be polled, and that takes a second or two where nothing else runs
_PATIENCE_S = 120.0
_LOOKS_EVERY_S = 1.0
_POLLS_EVERY_S = 0.001
_NS = 1e-9
_PROC = Path("/proc")


class ThreadTime(NamedTuple):
    """How long a thread has run, and how long it has waited for a processor, since it began."""

    ran_s: float
    waited_s: float


Threads = Mapping[int, ThreadTime]


class Look(NamedTuple):
    """The threads of a tree of processes, as they were at one time."""

    at_s: float
    threads: Threads


class Patience:
    """Becomes exhausted after `budget_s` seconds that count."""

    def __init__(
        self,
        budget_s: float = _PATIENCE_S,
        *,
        threads: Callable[[], Threads] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._left_s = budget_s
        self._threads = threads or threads_of_tree
        self._clock = clock
        # A look takes many milliseconds, and most waits are shorter than the time between two: they take none. What
        # threads had used before the first look then counts, but of no more than the time until it.
        self._last = Look(clock(), {})

    def is_exhausted(self) -> bool:
        now_s = self._clock()
        if now_s - self._last.at_s >= _LOOKS_EVERY_S:
            look = Look(now_s, self._threads())
            self._left_s -= counted_s(self._last, look)
            self._last = look
        return self._left_s <= 0


def until(is_so: Callable[[], object], what: str = "it", every_s: float = _POLLS_EVERY_S) -> None:
    """Returns once it is so. Fails when patience is exhausted."""
    patience, pause = Patience(), threading.Event()
    while not is_so():
        assert not patience.is_exhausted(), f"{what} did not come about"
        pause.wait(every_s)


def counted_s(before: Look, after: Look) -> float:
    """Returns how much of the time between two looks counts."""
    passed_s = after.at_s - before.at_s
    new = ThreadTime(0.0, 0.0)
    used = [(before.threads.get(thread, new), time) for thread, time in after.threads.items()]
    ran_s = sum(last.ran_s - first.ran_s for first, last in used)
    waited_s = sum(last.waited_s - first.waited_s for first, last in used)
    return min(passed_s, max(ran_s, passed_s - waited_s))


def threads_of_tree() -> Threads:
    """Returns the threads of this process and its descendants; none, so that all time counts, if the system is mute."""
    return {thread: times for process in _tree(os.getpid()) for thread, times in _threads(process)}


def _tree(root: int) -> Iterator[int]:
    parents = {int(entry.name): _parent(entry) for entry in _PROC.glob("[0-9]*")}
    for process in parents:
        ancestor: int | None = process
        while ancestor is not None and ancestor != root:
            ancestor = parents.get(ancestor)
        if ancestor == root:
            yield process


def _parent(process: Path) -> int:
    """Returns the parent of a process; 0 if the process has ended."""
    _, _, fields = _text(process / "stat").rpartition(")")  # the name of a program may contain spaces
    return int(fields.split()[1]) if fields else 0


def _threads(process: int) -> Iterator[tuple[int, ThreadTime]]:
    folder = _PROC / str(process) / "task"
    try:
        threads = os.listdir(folder)  # noqa: PTH208 - a glob raises on its way if the process ends
    except OSError:
        return
    for thread in threads:
        ran_ns, waited_ns, *_ = [*map(int, _text(folder / thread / "schedstat").split()), 0, 0]
        yield int(thread), ThreadTime(ran_ns * _NS, waited_ns * _NS)


def _text(file: Path) -> str:
    """Returns what a file holds; nothing if its process has ended."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
