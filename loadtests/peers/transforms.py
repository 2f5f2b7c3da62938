"""Transforms complex numbers and reads one element of the result, in NumPy or CuPy, in a process of its own."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from loadtests.measuring.timing import elapsed_ns
from loadtests.measuring.workers import answer_commands
from loadtests.peers.library_process import commands_of, imported
from loadtests.workloads.transforms import element_in, numbers

# The modules that have `fft`, by backend.
LIBRARIES = {"cpu": ("NumPy", "numpy"), "cuda": ("CuPy", "cupy")}


def serve(connection: Connection, module: str, points: int) -> None:
    """Answers `result` and `run_ns`."""
    answer_commands(connection, commands_of(lambda: _Transforms(imported(module), points), "result", "run_ns"))


class _Transforms:
    def __init__(self, library: Any, points: int) -> None:
        self._library = library
        self._numbers = library.asarray(numbers(points))

    def result(self) -> Any:
        """Returns some elements of the transform."""
        transformed = self._library.fft.fft(self._numbers)
        return np.array([complex(transformed[place]) for place in range(8)])

    def run_ns(self) -> int:
        """Returns the time of a transform, until one of its elements is read."""
        return elapsed_ns(lambda: element_in(self._library, self._numbers))
