"""Measures the time of calls of array functions on this machine's GPU in CuPy, in a process of its own.

Values are added at places by a sort and sums of neighbours, which have fixed bits; CuPy's own way adds by atomic
operations, whose order changes from run to run.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from loadtests.measuring.workers import answer_commands
from loadtests.peers.library_process import commands_of, imported
from loadtests.workloads.array_functions import CALLS, EQUATIONS, PLACES, VALUES, Arrays

_SAMPLES = 7


def serve(connection: Connection) -> None:
    """Answers `result NAME` and `device_us NAME`."""
    answer_commands(connection, commands_of(lambda: CupyFunctions(imported("cupy")), "result", "device_us"))


class CupyFunctions:
    """The calls in CuPy."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._theirs: dict[str, Callable[[Arrays], Any]] = {
            "cumsum [4096, 1024]": lambda operands: cupy.cumsum(operands[0], axis=1),
            "sort [4096, 1024]": lambda operands: cupy.sort(operands[0], axis=1),
            "add 1,000,000 values at 1,000 places": self._sorted_sums,
            "draw 1,000,000 normal numbers": lambda operands: cupy.random.standard_normal(VALUES, dtype="float32"),
            EQUATIONS.name: lambda operands: cupy.linalg.solve(*operands),
        }
        self._calls = {**CALLS, EQUATIONS.name: EQUATIONS}

    def result(self, name: str) -> Any:
        return self._theirs[name](self._operands(name)).get()

    def device_us(self, name: str) -> float:
        """Returns the time of a call on the GPU in µs: the median of some samples of several calls."""
        call, operands = self._theirs[name], self._operands(name)
        call(operands)
        return statistics.median(self._sample_us(call, operands, self._calls[name].together) for _ in range(_SAMPLES))

    def _operands(self, name: str) -> Arrays:
        return tuple([self._cupy.asarray(each) for each in self._calls[name].operands(0)])

    def _sample_us(self, call: Callable[[Arrays], Any], operands: Arrays, count: int) -> float:
        began, ended = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        began.record()
        for _ in range(count):
            call(operands)
        ended.record()
        ended.synchronize()
        elapsed_ms: float = self._cupy.cuda.get_elapsed_time(began, ended)
        return elapsed_ms * 1e3 / count

    def _sorted_sums(self, operands: Arrays) -> Any:
        cupy, (places, values) = self._cupy, operands
        order = cupy.argsort(places)
        ends = cupy.searchsorted(places[order], cupy.arange(PLACES), side="right")
        sums = cupy.concatenate([cupy.zeros(1), cupy.cumsum(values[order], dtype="float64")])[ends]
        return cupy.diff(sums, prepend=0)
