"""`churn`: sessions that connect, work for a moment, and vanish without a goodbye."""

from __future__ import annotations

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_WIDTH = 64


def _program(xp: Library, data: Data) -> Steps:
    x, weights = xp.asarray(data.normal(1, _WIDTH)), xp.asarray(data.weights(_WIDTH, _WIDTH))
    held = []  # values that the session holds when it vanishes
    while True:
        for _ in range(20):
            x = xp.tanh(x @ weights)
            held.append(x)
        yield x


SCENARIO = Scenario(
    name="churn",
    what="connects, runs 20 iterations, reads a value, and vanishes with its process",
    shows="whether a server gives back everything that vanished clients held",
    program=_program,
    sessions=200,
    sessions_vanish=True,
    peers=(),
)
