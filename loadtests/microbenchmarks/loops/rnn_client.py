"""A client process that runs the recurrent loop on data of its own, on command."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from time import monotonic_ns

import fusewire as fw
from loadtests.measuring.waits import Span
from loadtests.measuring.workers import answer_commands
from loadtests.system.context import FUSEWIRE, upload
from loadtests.system.remote_loop import as_fori_loop
from loadtests.workloads.loops import NUMPY, RNN_OPS, Loop, check_close, draw_rnn, run_rnn

_CHECKED_STEPS = 200
_LOOP_DEADLINE_S = 60.0


def serve(connection: Connection, target: str, batch: int, hidden: int, seed: int, stop: Event | None = None) -> None:
    """Answers `check`, `run STEPS`, `run_loop STEPS`, `run_calls STEPS CALLS` and `step_until_stopped`."""
    with fw.connect(target, local=False) as session:
        client = _RnnClient(session, batch, hidden, seed, stop or get_context("spawn").Event())
        commands: tuple[Callable[..., object], ...] = (
            client.check,
            client.run,
            client.run_loop,
            client.run_calls,
            client.step_until_stopped,
        )
        answer_commands(connection, {command.__name__: command for command in commands})


class _RnnClient:
    def __init__(self, session: fw.Session, batch: int, hidden: int, seed: int, stop: Event) -> None:
        self._session = session
        self._operands = draw_rnn(batch, hidden, seed)
        self._rnn = upload(session, self._operands)
        self._stop = stop

    def check(self) -> None:
        """Raises WrongResult if the loop's result differs from NumPy's, inline or as `fori_loop`."""
        expected = run_rnn(self._operands, range(_CHECKED_STEPS), NUMPY)
        check_close(run_rnn(self._rnn, range(_CHECKED_STEPS), FUSEWIRE).numpy(), expected, "the recurrent loop")
        check_close(self._fori_loop(_CHECKED_STEPS).numpy(), expected, "the recurrent loop as fori_loop")

    def run(self, steps: int) -> float:
        """Runs `steps` steps and fetches the result; returns the time of an op in µs."""
        return self.run_calls(steps, 1).length_ns / 1e3 / (steps * RNN_OPS)

    def run_loop(self, steps: int) -> Span:
        """Runs the loop as `fori_loop` and fetches the result; returns when this was."""
        began_ns = monotonic_ns()
        self._fori_loop(steps).numpy(_LOOP_DEADLINE_S)
        return Span(began_ns, monotonic_ns())

    def run_calls(self, steps: int, calls: int) -> Span:
        """Runs the loop `calls` times, fetching each result; returns when this was."""
        began_ns = monotonic_ns()
        for _ in range(calls):
            run_rnn(self._rnn, range(steps), FUSEWIRE).numpy()
        return Span(began_ns, monotonic_ns())

    def _fori_loop(self, steps: int) -> fw.Array:
        last: fw.Array = as_fori_loop(Loop(self._operands, run_rnn), self._rnn, steps)
        return last

    def step_until_stopped(self) -> list[tuple[int, int]]:
        """Runs and fetches step by step until stopped. Returns the monotonic times when each step began and ended."""
        times, rnn = [], self._rnn
        while not self._stop.is_set():
            began_ns = monotonic_ns()
            rnn = rnn._replace(state=run_rnn(rnn, range(1), FUSEWIRE))
            rnn.state.numpy()
            times.append((began_ns, monotonic_ns()))
        return times
