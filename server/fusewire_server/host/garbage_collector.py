"""Keeps the pauses of Python's garbage collector short, however many objects the server holds.

A full collection walks every live container, also the containers of all imports and of every client's programs. It
stops all threads meanwhile, for 100 ms and more. An object that has just survived a full collection is no garbage. So
the object is frozen, and the next full collection walks only newer objects. Reference counts still free frozen
objects. Cycles of frozen objects are found only when `tidy` walks all objects.

The server tidies when no session is open. The server also tidies after `MOST_ENDED` sessions have ended, because on a
server that is never idle the number of objects of ended sessions would otherwise grow without bound. The server tidies
for that reason at most once in `LEAST_ROUNDS`, because clients that open and close sessions must not decide how often
all other clients stop.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any, Self

QUIET_ROUNDS = 10
MOST_ENDED = 256
LEAST_ROUNDS = 600  # the least between two collections after many ended sessions: a minute, at ten rounds a second
_FULL = 2  # the generation of a full collection


class GarbageCollector:
    """Bounds the pauses of Python's collector. A process has one such object and uses it from one thread."""

    def __init__(self) -> None:
        self._quiet_rounds = 0
        self._rounds = 0  # since the last `tidy`
        self._ended = 0  # sessions that had ended at the last `tidy`

    def __enter__(self) -> Self:
        gc.callbacks.append(_set_survivors_apart)
        self.tidy()
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(_set_survivors_apart)
        gc.unfreeze()

    def watch(self, *, open_sessions: int, ended_sessions: int) -> None:
        """Counts a round, and tidies if it is time. The caller makes rounds at regular intervals.

        `open_sessions` is the number of sessions that are open now; `ended_sessions` is the number that have ever
        ended. Tidies when no session has been open for `QUIET_ROUNDS`. Also tidies when, since the last time,
        `MOST_ENDED` sessions have ended and `LEAST_ROUNDS` have passed.
        """
        self._rounds += 1
        self._quiet_rounds = 0 if open_sessions else self._quiet_rounds + 1
        have_many_ended = ended_sessions - self._ended >= MOST_ENDED and self._rounds >= LEAST_ROUNDS
        if self._quiet_rounds == QUIET_ROUNDS or have_many_ended:
            self._rounds = 0
            self._ended = ended_sessions
            self.tidy()

    def tidy(self) -> None:
        """Collects all garbage, also among frozen objects."""
        gc.unfreeze()
        gc.collect()


def _set_survivors_apart(phase: str, info: Mapping[str, Any]) -> None:
    if phase == "stop" and info["generation"] == _FULL:
        gc.freeze()
