"""Runs the steps of one session on a thread of its own, and notes the times of each step."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loadtests.load.clock import MONOTONIC_CLOCK, Clock
from loadtests.load.pace import Pace
from loadtests.load.samples import Samples, of_steps
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Steps

DIGEST_BYTES = 8

Value = npt.NDArray[Any] | None


class RunnerReport(NamedTuple):
    """What a session has done since it began. `digests` holds 8 bytes for each value read, if digests are taken."""

    session: int
    steps: int
    error: str | None
    digests: bytes


class SessionRunner:
    """Runs the steps of one session in a thread of its own. Another thread owns the runner and calls its methods.

    The runner's thread appends to `_steps`, and the owner takes steps out. Both operations of a deque are atomic.
    """

    def __init__(
        self, xp: Library, steps: Steps, pace: Pace, *, takes_digests: bool, clock: Clock = MONOTONIC_CLOCK
    ) -> None:
        self._read: Callable[[Any], npt.NDArray[Any]] = xp.read
        self._program = steps
        self._pace = pace
        self._clock = clock
        self._digests = bytearray() if takes_digests else None
        self._value: Value = None  # the value that the last step read, which is sent into the program
        self._steps: deque[tuple[int, int, int, int]] = deque()
        self._done = 0
        self.session = pace.session
        self.error: str | None = None
        self._stops = threading.Event()
        self._thread: threading.Thread | None = None

    def first_step(self) -> Value:
        """Makes the operands and runs one step in the calling thread. Returns the value that the step read."""
        array = self._program.send(None)
        self._value = None if array is None else self._read(array)
        self._note(self._value)
        return self._value

    def start(self, began_ns: int) -> None:
        """Starts the thread, which begins to run steps. The load began at `began_ns`."""
        self._thread = threading.Thread(target=self._run, args=(began_ns,), daemon=True)
        self._thread.start()

    def take(self) -> Samples:
        """Returns the steps done since the last call of `take`."""
        return of_steps([self._steps.popleft() for _ in range(len(self._steps))])

    def stop(self) -> None:
        """Makes the thread end after the step that is under way."""
        self._stops.set()

    def wait_for_end(self, timeout_s: float) -> None:
        """Waits for the end of the thread. If the step under way does not end in time, notes this as an error."""
        assert self._thread is not None
        self._thread.join(max(timeout_s, 0.0))
        if self._thread.is_alive():
            self.error = f"step {self._done + 1} did not end in time"

    def report(self) -> RunnerReport:
        return RunnerReport(self.session, self._done, self.error, bytes(self._digests or b""))

    def _run(self, began_ns: int) -> None:
        try:
            self.run_steps(began_ns)
        except Exception as error:  # noqa: BLE001 - reported as the session's error, whatever it is
            self.error = f"{type(error).__name__}: {error}"

    # This loop must be fast, because it takes processor time in the same process as the measured client.
    def run_steps(self, began_ns: int, most_steps: int = sys.maxsize) -> None:
        """Runs steps in the calling thread until `stop` is called, but at most `most_steps` steps."""
        program, read, stops = self._program.send, self._read, self._stops
        intended_ns_of, session, is_open = self._pace.intended_ns, self.session, self._pace.rate_per_s is not None
        now, sleep_until = self._clock
        value, step = self._value, 0
        while step < most_steps and not stops.is_set():
            now_ns = now()
            intended_ns = intended_ns_of(step, began_ns, now_ns) if is_open else now_ns
            if intended_ns > now_ns and not sleep_until(intended_ns, stops):
                return
            array = program(value)
            recorded_ns = now()
            value = None if array is None else read(array)
            self._steps.append((session, intended_ns, recorded_ns, now()))
            step += 1
            self._note(value)

    def _note(self, value: Value) -> None:
        self._done += 1
        if self._digests is not None and value is not None:
            self._digests += digest_of(value)


def digest_of(value: npt.NDArray[Any]) -> bytes:
    """Returns 8 bytes, which differ between values that differ in a bit, in shape or in dtype."""
    contents = np.ascontiguousarray(value)
    spec = f"{contents.dtype.str}{contents.shape}".encode()
    return hashlib.blake2b(contents.tobytes(), digest_size=DIGEST_BYTES, key=spec[:64]).digest()
