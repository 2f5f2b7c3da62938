"""A scenario: the program that every session of a load test runs, written once for all array libraries.

A program is a generator. It makes its operands, and then repeats a step. At the end of a step it yields the array that
its user reads, or None if the user reads nothing in this step. The value of the `yield` expression is that array as a
NumPy array. The time from the beginning of a step until the user has read the array is the step's latency.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loadtests.scenarios.library import Library

Floats = npt.NDArray[np.float32]
Steps = Generator[Any, Any, None]


class Data:
    """The random data of one session. They depend only on the seed of the load test and the session's number.

    So a session gets the same data in every library, and no two sessions get the same data.
    """

    def __init__(self, seed: int, session: int) -> None:
        self.session = session
        self.random = np.random.default_rng((seed, session))

    def normal(self, *shape: int) -> Floats:
        """Returns normally distributed float32 numbers with variance 1."""
        return self.random.standard_normal(shape, np.float32)

    def weights(self, inputs: int, outputs: int) -> Floats:
        """Returns a float32 matrix. Values that are multiplied by this matrix keep their variance."""
        return self.normal(inputs, outputs) / np.float32(np.sqrt(inputs))


Program = Callable[[Library, Data], Steps]


@dataclass(frozen=True)
class Scenario:
    """A program, and how a load test runs it.

    `program` runs in every measured session. `disturber` runs in one more session, in a process of its own, whose steps
    are not measured: the load is then measured twice, first without the disturber and then with it.
    """

    name: str
    what: str  # what a session does
    shows: str  # what the scenario shows about a server
    program: Program
    disturber: Program | None = None
    sessions: int = 8  # unless the command says another number
    sessions_vanish: bool = False  # whether a session's process ends after one step, without a goodbye
    is_exact: bool = False  # whether IEEE 754 leaves one possible result, so that NumPy's bits are the right ones
    peers: tuple[str, ...] = ("numpy", "torch")  # the libraries that can run the program too
