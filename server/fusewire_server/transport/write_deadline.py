"""Cancels a task that waits too long to write, without a timer for each write.

Passing costs two assignments. One timer looks now and then whether somebody is still there, and no later than the
bound after they came.
"""

from __future__ import annotations

import asyncio


class WriteDeadline:
    """For one task, which enters and leaves: `with patience: await …`. After `limit_s` inside it is cancelled."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None  # the one that is inside
        self._entered_s = 0.0
        self._timer = self._loop.call_later(limit_s, self._look)
        self.is_over = False

    def __enter__(self) -> None:
        self._entered_s = self._loop.time()
        self._task = asyncio.current_task()

    def __exit__(self, *_: object) -> None:
        self._task = None

    def end(self) -> None:
        """Nobody will enter any more."""
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
