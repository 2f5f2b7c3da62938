"""Runs and times loops in NumPy, op by op, in a process that does nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from multiprocessing.connection import Connection

import numpy as np

from loadtests.measuring.timing import elapsed_ns
from loadtests.measuring.workers import answer_commands
from loadtests.workloads.loops import NUMPY, Chain, Floats, Functions, Loop, result_in_numpy


def serve(connection: Connection, loops: Mapping[str, Loop]) -> None:
    """Answers `result LOOP STEPS` and `run_ns LOOP STEPS`."""
    peer = _NumpyLoops(loops)
    answer_commands(connection, {"result": peer.result, "run_ns": peer.run_ns})


class _NumpyLoops:
    def __init__(self, loops: Mapping[str, Loop]) -> None:
        self._loops = loops

    def result(self, name: str, steps: int) -> Floats:
        """Returns the state after `steps` steps."""
        return result_in_numpy(self._loops[name], steps)

    def run_ns(self, name: str, steps: int) -> int:
        """Returns the time of `steps` steps."""
        loop = self._loops[name]
        return elapsed_ns(lambda: loop.read(loop.run(loop.operands, range(steps), NUMPY)))


def run_chain_in_place(chain: Chain, steps: Iterable[object], _functions: Functions) -> Floats:
    """Runs the loop of `run_chain`. Every op writes into one array, as users do it to save memory."""
    x: Floats = chain.x.copy()
    for _ in steps:
        np.add(x, chain.b, out=x)
        np.multiply(x, chain.z, out=x)
        np.negative(x, out=x)
        np.exp(x, out=x)
        np.add(x, 1, out=x)
        np.divide(1, x, out=x)
        np.tanh(x, out=x)
        np.maximum(x, 0, out=x)
    return x
