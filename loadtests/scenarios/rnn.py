"""`rnn`: a recurrent loop that keeps its state on the server and is read once in a while."""

from __future__ import annotations

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_HIDDEN = 256
_ITERATIONS = 100  # of a step


def _program(xp: Library, data: Data) -> Steps:
    h = xp.asarray(data.normal(1, _HIDDEN))
    weights = xp.asarray(data.weights(_HIDDEN, _HIDDEN))
    bias, scale = xp.asarray(data.normal(_HIDDEN)), xp.asarray(data.normal(_HIDDEN))
    residual = xp.asarray(data.normal(1, _HIDDEN))
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
