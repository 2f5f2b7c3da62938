"""Keeps the pauses of Python's garbage collector short, however much the server holds.

A full collection walks every live container, those of all imports and of every client's programs, and stops all threads
meanwhile, for 100 ms and more. Objects that have just survived one are no garbage, so they are frozen, and the next
collection walks only newer ones. Reference counts still free frozen objects; cycles among them are found only when
`tidy` walks everything. The server tidies when no session is open. It also tidies after `MOST_ENDED` sessions have
ended, so that the objects they leave stay bounded on a server that is never idle, but at most once in `LEAST_ROUNDS`:
clients that open and close sessions must not decide how often all others stop.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any, Self

QUIET_ROUNDS = 10
MOST_ENDED = 256
LEAST_ROUNDS = 600  # between two collections after many ended sessions: a minute, at ten rounds a second
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
        """Counts a round, and tidies if it is time. Called in regular rounds.

        `open_sessions` and `ended_sessions` are the numbers of sessions that are open and that have ever ended. Tidies
        `QUIET_ROUNDS` after the last session ended, or when `MOST_ENDED` more have ended and the last time was
        `LEAST_ROUNDS` ago.
        """
        self._rounds += 1
        self._quiet_rounds = 0 if open_sessions else self._quiet_rounds + 1
        have_many_ended = ended_sessions - self._ended >= MOST_ENDED and self._rounds >= LEAST_ROUNDS
        if self._quiet_rounds == QUIET_ROUNDS or have_many_ended:
            self._rounds = 0
            self._ended = ended_sessions
            self.tidy()

    def tidy(self) -> None:
        """Collects everything, frozen objects included."""
        gc.unfreeze()
        gc.collect()


def _set_survivors_apart(phase: str, info: Mapping[str, Any]) -> None:
    if phase == "stop" and info["generation"] == _FULL:
        gc.freeze()
