"""`rnn`: a recurrent loop that keeps its state on the server and is read once in a while."""

from __future__ import annotations

import numpy as np

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_HIDDEN = 256
_ITERATIONS = 100  # in a step


def _program(xp: Library, data: Data) -> Steps:
    h = xp.asarray(data.normal(1, _HIDDEN))
    # The matrix is orthogonal, and the scale makes the slope of the sigmoid 1 at most. So the state changes in every
    # iteration and never settles, a result tells how many iterations were done, and rounding errors do not grow.
    weights = xp.asarray(np.linalg.qr(data.normal(_HIDDEN, _HIDDEN))[0])
    bias, scale = xp.asarray(data.normal(_HIDDEN) / 100), xp.asarray(np.full(_HIDDEN, 4, np.float32))
    residual = xp.asarray(np.full((1, _HIDDEN), -0.5, np.float32))
    while True:
        for _ in range(_ITERATIONS):
            h = xp.sigmoid(-((h @ weights + bias) * scale)) + residual
        yield h


SCENARIO = Scenario(
    name="rnn",
    what=f"a recurrent loop, batch 1, width {_HIDDEN}; the state is read after each {_ITERATIONS} iterations",
    shows="the cost of an operation, and the rows that sessions share",
    program=_program,
)
