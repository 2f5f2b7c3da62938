"""Cancels a task that waits too long to write, without a timer for each write.

A task enters the deadline before a write and leaves it afterwards; this costs a few assignments. One timer looks from
time to time whether a task is inside, and cancels a task that it has seen inside the same write often enough. So the
deadline counts looks and not time: while the event loop is late, because other work holds it, there are fewer looks,
and nobody is blamed for a write that the server itself delays.
"""

from __future__ import annotations

import asyncio

LOOKS = 8  # in the time that a write may take


class WriteDeadline:
    """A deadline for one task's writes: `with write_deadline: await …`. Cancels the task if a write takes `limit_s`."""

    def __init__(self, limit_s: float) -> None:
        self._look_every_s = limit_s / LOOKS
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None  # the task that is inside
        self._seen = 0  # how many looks have seen it inside this write
        self._timer = self._loop.call_later(self._look_every_s, self._look)
        self.is_over = False

    def __enter__(self) -> None:
        self._seen = 0
        self._task = asyncio.current_task()

    def __exit__(self, *_: object) -> None:
        self._task = None

    def end(self) -> None:
        """Stops the timer. No task may enter after that."""
        self._timer.cancel()

    def _look(self) -> None:
        if self._task is not None:
            self._seen += 1
            if self._seen > LOOKS:  # the first look may have come right after the write began
                self.is_over = True
                self._task.cancel()
                return
        self._timer = self._loop.call_later(self._look_every_s, self._look)
