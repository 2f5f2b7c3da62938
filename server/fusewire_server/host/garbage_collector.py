"""Keeps the pauses of Python's garbage collector short, however much the server holds.

A full collection walks every container that is alive, those of all imports and of every client's programs, and stops
all threads meanwhile: 100 ms and more. What has just survived one is no garbage, so it is set apart, and the next
walks only what came since. Counting references still frees what was set apart; only cycles among it are not found
until `tidy` walks everything. The server does that when nobody is there to notice, and, so that what sessions have left
behind stays bounded on one that is never alone, after so many of them, but then once in a while at most: whoever opens
and closes sessions must not decide how often all others stop.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any, Self

QUIET_ROUNDS = 10
MOST_ENDED = 256
LEAST_ROUNDS = 600  # between two collections for the sake of ended sessions: a minute, of ten rounds a second
_FULL = 2  # the generation that holds all


class GarbageCollector:
    """Used from one thread. The collector is the whole process's, so there is one of these."""

    def __init__(self) -> None:
        self._quiet_rounds = 0
        self._rounds = 0  # since it last tidied
        self._ended = 0  # sessions, by the time it last tidied

    def __enter__(self) -> Self:
        gc.callbacks.append(_set_survivors_apart)
        self.tidy()
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(_set_survivors_apart)
        gc.unfreeze()

    def watch(self, *, open_sessions: int, ended_sessions: int) -> None:
        """Called in regular rounds with the sessions that are open and those that have ever ended.

        Tidies once `QUIET_ROUNDS` have passed after the last session ended, or when `MOST_ENDED` more have ended and
        the last time is `LEAST_ROUNDS` ago.
        """
        self._rounds += 1
        self._quiet_rounds = 0 if open_sessions else self._quiet_rounds + 1
        have_many_ended = ended_sessions - self._ended >= MOST_ENDED and self._rounds >= LEAST_ROUNDS
        if self._quiet_rounds == QUIET_ROUNDS or have_many_ended:
            self._rounds = 0
            self._ended = ended_sessions
            self.tidy()

    def tidy(self) -> None:
        """Walks everything, what was set apart included."""
        gc.unfreeze()
        gc.collect()


def _set_survivors_apart(phase: str, info: Mapping[str, Any]) -> None:
    if phase == "stop" and info["generation"] == _FULL:
        gc.freeze()
