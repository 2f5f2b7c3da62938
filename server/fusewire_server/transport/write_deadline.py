"""Cancels a task that waits too long to write, without a timer for each write.

A task enters the deadline before a write and leaves it afterwards; this costs a few assignments. One timer checks from
time to time whether a task is inside, and cancels a task that has been inside for `limit_s`.
"""

from __future__ import annotations

import asyncio


class WriteDeadline:
    """A deadline for one task's writes: `with write_deadline: await …`. Cancels the task if a write takes `limit_s`."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None  # the task that is inside
        self._entered_s = 0.0
        self._timer = self._loop.call_later(limit_s, self._look)
        self.is_over = False

    def __enter__(self) -> None:
        self._entered_s = self._loop.time()
        self._task = asyncio.current_task()

    def __exit__(self, *_: object) -> None:
        self._task = None

    def end(self) -> None:
        """Stops the timer. No task may enter after that."""
        self._timer.cancel()

    def _look(self) -> None:
        left_s = self._limit_s
        if self._task is not None:
            left_s += self._entered_s - self._loop.time()
            if left_s <= 0:
                self.is_over = True
                self._task.cancel()
                return
        self._timer = self._loop.call_later(left_s, self._look)
