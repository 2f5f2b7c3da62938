"""Keeps how the segments of one session ran, in a bounded ring, while its client profiles them. Pure."""

from __future__ import annotations

from collections import deque

from fusewire_protos.profiled import MOST_RUNS, RUN_BYTES, Run, encode_profiled, encode_run

MOST_BYTES = MOST_RUNS * (RUN_BYTES + 56)  # that a profile takes, with the objects around the bytes of its runs


class Profile:
    """The last runs of a session that its client has not been told. The engine thread owns it."""

    def __init__(self) -> None:
        self._runs: deque[bytes] = deque(maxlen=MOST_RUNS)
        self._lost = 0

    def add(self, run: Run) -> None:
        """Keeps a run. Overwrites the oldest one if there is no room."""
        self._lost += len(self._runs) == MOST_RUNS
        self._runs.append(encode_run(run))

    def take(self, now_ns: int) -> bytes:
        """Returns an encoded answer with all runs, and forgets them."""
        raw = encode_profiled(now_ns, self._lost, self._runs)
        self._runs.clear()
        self._lost = 0
        return raw
