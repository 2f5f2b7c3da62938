"""What one task of an event loop sleeps on until any thread wakes it.

An `asyncio.Event` sets a future in one turn of the loop, and the future wakes the task in the next; each turn asks the
system for news and competes for the interpreter. An alarm is itself what the task awaits (asyncio's protocol for
futures that are not its own), so that it costs one turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context, copy_context
from typing import Any


class Alarm:
    """`await` it in one task, always the same. It may ring for nothing: whoever wakes up looks around."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # The loop's thread alone uses these.
        self._asyncio_future_blocking = False  # the protocol's word for: a task is about to wait
        self._wake_task: Callable[[Any], object] | None = None
        self._context = copy_context()  # the task's, once it has slept; callbacks run in it, so that the task does
        self._timer: asyncio.Handle | None = None
        self._rings_at_s = 0.0  # while there is a timer; uvloop's handles cannot always tell

    def ring(self) -> None:
        """From any thread."""
        try:  # noqa: SIM105  # on the way of each fetch, where `suppress` is another object
            self._loop.call_soon_threadsafe(self._ring, context=self._context)
        except RuntimeError:
            pass  # the loop is closed

    def ring_at(self, when_s: float) -> None:
        """In the loop's thread: at `when_s` of the loop's clock at the latest; a timer once set is kept."""
        if self._timer is not None:
            if self._rings_at_s <= when_s:
                return
            self._timer.cancel()
        self._rings_at_s = when_s
        self._timer = self._loop.call_at(when_s, self._on_time, context=self._context)

    def __await__(self) -> Generator[Alarm, None, None]:
        self._asyncio_future_blocking = True
        yield self

    def _on_time(self) -> None:
        self._timer = None
        self._ring()

    def _ring(self) -> None:
        wake_task, self._wake_task = self._wake_task, None
        if wake_task is not None:
            wake_task(self)

    # ---- what asyncio asks of a future ----

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, wake_task: Callable[[Any], object], *, context: Context) -> None:
        self._wake_task, self._context = wake_task, context

    def result(self) -> None:
        """Nothing but the fact that it rang."""

    def cancel(self, msg: Any = None) -> bool:
        """The task raises CancelledError by itself, once it wakes."""
        self._loop.call_soon(self._ring, context=self._context)
        return False
