"""The steps of an event loop: what runs between two looks of the server at the clock, in processor time of the thread.

A step begins and ends where a callback of the loop does, and where the server looks at its clock in between. Processor
time does not count what other processes use, so a busy machine makes no step longer.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_CLIENT = "Client."  # begins the names of the callbacks that are not of the server


class Step(NamedTuple):
    """A step: its time, and the names of what ran when it began and ended."""

    time_ns: int = 0
    began: str = ""
    ended: str = ""


class Steps:
    """A clock of the server, which notes the steps. The thread of the event loop owns it."""

    def __init__(self) -> None:
        self.total_ns = 0
        self.longest = Step()
        self._at_ns = 0
        self._last = ""
        self._has_collected = False  # whether the garbage collector has run in this step

    def monotonic_ns(self) -> int:
        """Is called by the server."""
        self._look(sys._getframe(1).f_code.co_name)
        return self._at_ns

    def thread_time_ns(self) -> int:
        """Is called by the server. Ends no step, because the server looks at its clock beside it."""
        return time.thread_time_ns()

    def begin(self, handle: asyncio.Handle) -> None:
        self._last, self._at_ns = name_of(handle), time.thread_time_ns()

    def end(self, handle: asyncio.Handle) -> None:
        self._look(f"end of {name_of(handle)}")

    def _look(self, name: str) -> None:
        now_ns = time.thread_time_ns()
        time_ns = now_ns - self._at_ns
        self.total_ns += time_ns
        if time_ns > self.longest.time_ns:
            self.longest = Step(time_ns, self._last, f"{name}, with a collection" if self._has_collected else name)
        self._has_collected = False
        self._last, self._at_ns = name, time.thread_time_ns()

    def note_collection(self, phase: str, _info: dict[str, int]) -> None:
        """Is called by the garbage collector."""
        self._has_collected = True

    def reset(self) -> None:
        self.total_ns, self.longest = 0, Step()


def name_of(handle: asyncio.Handle) -> str:
    callback = handle._callback  # type: ignore[attr-defined]
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return getattr(task.get_coro(), "__qualname__", "task")
    return getattr(callback, "__qualname__", repr(callback))


@contextmanager
def noted() -> Iterator[Steps]:
    """Notes the steps of the one event loop that runs meanwhile. A server with this clock slices processor time."""
    steps, run = Steps(), asyncio.Handle._run

    def run_noted(handle: asyncio.Handle) -> None:
        if name_of(handle).startswith(_CLIENT):
            run(handle)
            return
        steps.begin(handle)
        run(handle)
        steps.end(handle)

    asyncio.Handle._run = run_noted  # type: ignore[assignment, method-assign]
    gc.callbacks.append(steps.note_collection)
    try:
        yield steps
    finally:
        gc.callbacks.remove(steps.note_collection)
        asyncio.Handle._run = run  # type: ignore[method-assign]
