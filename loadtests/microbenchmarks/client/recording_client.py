"""A client process that records loops, and tells how long its thread took for an op."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from multiprocessing.connection import Connection
from statistics import median
from time import perf_counter_ns, thread_time_ns
from timeit import Timer
from typing import NamedTuple

import numpy as np

import fusewire as fw
from loadtests.measuring.workers import answer_commands
from loadtests.system.context import FUSEWIRE, upload
from loadtests.workloads.loops import NUMPY, RNN_OPS, check_close, draw_rnn, run_rnn
from loadtests.workloads.stencil import STENCIL_OPS, draw_grid, run_stencil

_STEPS = 10_000  # in a turn, as in the loops of the `rnn` figures; their ops are fewer than the credit of 65,536 ops
_STEPS_BETWEEN_TIMES = 10
FIRST_STEPS = 1_000
_CHECKED_STEPS = 200
_STENCIL_STEPS = 2_000  # in a turn
_CALL_PARTS, _CALLS_IN_A_PART = 10, 200
ADDITION = "x + y"
CALLS = (  # one op each; `x` and `y` are matrices, `row` is a vector
    ADDITION,
    "x.T",
    "x.transpose()",
    "x.reshape(4, 64)",
    "x.sum()",
    "fw.sum(x, axis=0)",
    "x.mean(axis=1, keepdims=True)",
    "x.astype(fw.int32)",
    "x[0]",
    "x[1:3]",
    "fw.maximum(x, y)",
    "fw.concat([x, y])",
    "fw.clip(x, 0.0, 1.0)",
    "fw.zeros((16, 16))",
    "x[0] = row",
    "x[0] = 0.5",
    "x -= y",
)


class Recorded(NamedTuple):
    """The times of an op in one turn, in µs.

    `mean` and `processor` are means over all ops, in elapsed time and in the thread's processor time. `alone` is the
    median over short parts of the turn. Most parts end no segment, so it is the time without cutting and sealing.
    `first` is the mean over the first FIRST_STEPS steps, whose segments are the shortest.
    """

    mean: float
    processor: float
    alone: float
    first: float


def serve(connection: Connection, target: str) -> None:
    """Answers `check`, `record`, `record_stencil`, `record_calls` and `read`."""
    with fw.connect(target, local=False) as session:
        client = _RecordingClient(session)
        commands = (client.check, client.record, client.record_stencil, client.record_calls, client.read)
        answer_commands(connection, {command.__name__: command for command in commands})


class _RecordingClient:
    def __init__(self, session: fw.Session) -> None:
        self._operands = draw_rnn(1, 16, 0)
        self._rnn = upload(session, self._operands)
        self._host_grid = draw_grid(0)
        self._grid = session.array(self._host_grid)
        self._last: fw.Array = self._rnn.state

    def check(self) -> None:
        """Raises WrongResult if a loop's result differs from NumPy's."""
        expected = run_rnn(self._operands, range(_CHECKED_STEPS), NUMPY)
        check_close(run_rnn(self._rnn, range(_CHECKED_STEPS), FUSEWIRE).numpy(), expected, "the recurrent loop")
        spread = run_stencil(self._host_grid, _CHECKED_STEPS, np)
        check_close(run_stencil(self._grid, _CHECKED_STEPS, fw).numpy(), spread, "the grid")

    def record(self) -> Recorded:
        """Records a turn. Its ops have run when `read` returns."""
        times_ns: list[int] = []
        began_ns, began_processor_ns = perf_counter_ns(), thread_time_ns()
        self._last = run_rnn(self._rnn, _timed_steps(times_ns), FUSEWIRE)
        processor_ns, elapsed_ns = thread_time_ns() - began_processor_ns, perf_counter_ns() - began_ns
        ops, parts_ns = _STEPS * RNN_OPS, [after - before for before, after in pairwise(times_ns)]
        alone_us = median(parts_ns) / 1e3 / (_STEPS_BETWEEN_TIMES * RNN_OPS)
        first_us = sum(parts_ns[: FIRST_STEPS // _STEPS_BETWEEN_TIMES]) / 1e3 / (FIRST_STEPS * RNN_OPS)
        return Recorded(elapsed_ns / 1e3 / ops, processor_ns / 1e3 / ops, alone_us, first_us)

    def record_stencil(self) -> float:
        """Records a turn of steps on the grid. Returns the mean time of an op in µs."""
        began_ns = perf_counter_ns()
        self._last = run_stencil(self._grid, _STENCIL_STEPS, fw)
        return (perf_counter_ns() - began_ns) / 1e3 / (_STENCIL_STEPS * STENCIL_OPS)

    def record_calls(self) -> dict[str, float]:
        """Records a turn of each of CALLS. Returns the median time of one in µs, over short parts of the turn."""
        x, y, row = fw.zeros((16, 16)), fw.ones((16, 16)), fw.ones(16)
        names = {"fw": fw, "given": x, "y": y, "row": row}
        timers = {call: Timer(call, "x = given", globals=names) for call in CALLS}  # `x -= y` assigns to a local name
        parts = {call: timer.repeat(_CALL_PARTS, _CALLS_IN_A_PART) for call, timer in timers.items()}
        self._last = x
        return {call: median(parts_s) * 1e6 / _CALLS_IN_A_PART for call, parts_s in parts.items()}

    def read(self) -> None:
        """Waits until all recorded ops have run."""
        self._last.numpy()


def _timed_steps(times_ns: list[int]) -> Iterator[int]:
    for _ in range(0, _STEPS, _STEPS_BETWEEN_TIMES):
        times_ns.append(perf_counter_ns())
        yield from range(_STEPS_BETWEEN_TIMES)
