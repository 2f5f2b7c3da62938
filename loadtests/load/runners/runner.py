"""The thread of one session: it runs steps until it is told to stop, and notes the times of each step."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from loadtests.load.runners.reads import Array, Read
from loadtests.load.windows.samples import Samples, Step, of_steps


class RunnerReport(NamedTuple):
    """What a session has done since it began."""

    session: int
    steps: int
    error: str | None
    reads: Sequence[Read] = ()  # one entry for each step, if reads are kept
    compared: int = 0  # answers that were compared with recorded ones
    differences: tuple[str, ...] = ()  # a sentence for each of these answers that differs


class Runner(ABC):
    """One session. Another thread owns the runner and calls its methods.

    The runner's thread appends to `_steps`, and the owner takes steps out. Both operations of a deque are atomic.
    """

    def __init__(self, session: int) -> None:
        self.session = session
        self.error: str | None = None
        self._steps: deque[tuple[int, ...]] = deque()  # as `Step`
        self._stops = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def first_step(self) -> Array | None:
        """Prepares the session in the calling thread, so that steps can be timed. Returns the value that it read."""

    @abstractmethod
    def run_steps(self, began_ns: int) -> None:
        """Runs steps in the calling thread until `stop` is called. The load began at `began_ns`."""

    @abstractmethod
    def report(self) -> RunnerReport: ...

    @abstractmethod
    def _under_way(self) -> str:
        """Says which step is under way, and what it waits for."""

    def start(self, began_ns: int) -> None:
        """Starts the thread, which begins to run steps. The load began at `began_ns`."""
        self._thread = threading.Thread(target=self._run, args=(began_ns,), daemon=True)
        self._thread.start()

    def take(self) -> Samples:
        """Returns the steps done since the last call of `take`."""
        return of_steps([Step(*self._steps.popleft()) for _ in range(len(self._steps))])

    def stop(self) -> None:
        """Makes the thread end after the step that is under way."""
        self._stops.set()

    def wait_for_end(self, timeout_s: float) -> None:
        """Waits for the end of the thread. If the step under way does not end in time, notes this as an error."""
        assert self._thread is not None
        self._thread.join(max(timeout_s, 0.0))
        if self._thread.is_alive():
            self.error = f"{self._under_way()}: it did not end in time"

    def _run(self, began_ns: int) -> None:
        try:
            self.run_steps(began_ns)
        except Exception as error:  # noqa: BLE001 - reported as the session's error, whatever it is
            self.error = f"{self._under_way()}: {type(error).__name__}: {error}"
