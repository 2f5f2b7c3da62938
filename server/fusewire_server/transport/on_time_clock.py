"""A clock that stands still while the event loop is late, so that no client pays for the server's delays.

A timer beats; a beat adds at most the time that there should be between two beats. If a turn of the loop takes seconds,
a deadline on this clock comes as many seconds later, and the bytes that have come meanwhile are read before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

BEAT_S = 0.1


class OnTimeClock:
    """A clock that goes while somebody uses it: `with clock.going(): …`. The engine thread owns this object."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._beat_at_s = 0.0  # the loop's time at the last beat
        self._users = 0
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def going(self) -> Iterator[None]:
        """Lets the clock go while the `with` body runs."""
        self._users += 1
        if self._timer is None:
            self._beat_at_s = asyncio.get_running_loop().time()
            self._beat()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def pass_until(self, at_s: float) -> None:
        """Goes on to the loop's time `at_s`, but by no more than a beat."""
        self.now_s += min(at_s - self._beat_at_s, BEAT_S)
        self._beat_at_s = at_s

    def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        self.pass_until(loop.time())
        self._timer = loop.call_later(BEAT_S, self._beat)
