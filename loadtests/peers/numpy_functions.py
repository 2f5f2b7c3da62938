"""Measures the time of calls of array functions in NumPy, in a process of its own."""

from __future__ import annotations

import statistics
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from loadtests.measuring.timing import elapsed_ns
from loadtests.measuring.workers import answer_commands
from loadtests.workloads.array_functions import EQUATIONS

_SAMPLES = 21


def serve(connection: Connection) -> None:
    """Answers `result NAME` and `device_us NAME`."""
    answer_commands(connection, {"result": _result, "device_us": _device_us})


def _result(name: str) -> Any:
    return _CALLS[name](*EQUATIONS.operands(0))


def _device_us(name: str) -> float:
    """Returns the time of a call in µs: the median of some."""
    operands = EQUATIONS.operands(0)
    _CALLS[name](*operands)
    return statistics.median(elapsed_ns(lambda: _CALLS[name](*operands)) for _ in range(_SAMPLES)) / 1e3


_CALLS = {EQUATIONS.name: np.linalg.solve}
