"""Runs the program of a scenario in one session, step by step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from loadtests.load.runners.clock import MONOTONIC_CLOCK, Clock
from loadtests.load.runners.pace import Pace
from loadtests.load.runners.reads import Array, Reads
from loadtests.load.runners.runner import Runner, RunnerReport
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Steps


class SessionRunner(Runner):
    """Runs the steps of a scenario's program. Keeps what they read in `reads`, unless that is None."""

    def __init__(
        self, xp: Library, steps: Steps, pace: Pace, reads: Reads | None, *, clock: Clock = MONOTONIC_CLOCK
    ) -> None:
        super().__init__(pace.session)
        self._read: Callable[[Any], Array] = xp.read
        self._program = steps
        self._pace = pace
        self._clock = clock
        self._reads = reads
        self._value: Array | None = None  # the value that the last step read, which is sent into the program
        self._awaited: Any = None  # the array whose value is being read
        self._done = 0

    def first_step(self) -> Array | None:
        """Makes the operands and runs one step in the calling thread. Returns the value that the step read."""
        array = self._program.send(None)
        self._value = None if array is None else self._read(array)
        self._note(self._value)
        return self._value

    def report(self) -> RunnerReport:
        reads = () if self._reads is None else tuple(self._reads.kept)
        return RunnerReport(self.session, self._done, self.error, reads)

    def _under_way(self) -> str:
        step, awaited = f"step {self._done + 1}", self._awaited
        if awaited is None:
            return step
        dtype = str(awaited.dtype).rpartition(".")[2]  # without the library's name
        return f"{step}, reading {dtype} of shape {tuple(awaited.shape)}"

    # This loop must be fast, because it takes processor time in the same process as the measured client.
    def run_steps(self, began_ns: int, most_steps: int = sys.maxsize) -> None:
        """Runs steps in the calling thread until `stop` is called, but at most `most_steps` steps."""
        program, read, stops = self._program.send, self._read, self._stops
        intended_ns_of, session, is_open = self._pace.intended_ns, self.session, self._pace.rate_per_s is not None
        now, sleep_until = self._clock
        value, step, free_ns = self._value, 0, began_ns
        while step < most_steps and not stops.is_set():
            step_began_ns = intended_ns = due_ns = now()
            if is_open:
                intended_ns = intended_ns_of(step, began_ns, step_began_ns)
                if intended_ns > step_began_ns and not sleep_until(intended_ns, stops):
                    return
                due_ns, step_began_ns = max(intended_ns, free_ns), now()
            array = program(value)
            recorded_ns = now()
            self._awaited = array
            value = None if array is None else read(array)
            self._awaited = None
            ended_ns = now()
            self._steps.append((session, intended_ns, due_ns, step_began_ns, recorded_ns, ended_ns))
            free_ns = due_ns + ended_ns - step_began_ns  # when it would have ended, had no step ever begun late
            step += 1
            self._note(value)

    def _note(self, value: Array | None) -> None:
        self._done += 1
        if self._reads is not None:
            self._reads.add(value)
