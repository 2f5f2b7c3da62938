"""`rl`: a tiny policy that chooses each action of a simulated agent, so that every step waits for an answer."""

from __future__ import annotations

import numpy as np

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Floats, Scenario, Steps

_SENSES, _WIDTH, _ACTIONS = 16, 32, 4


def program(xp: Library, data: Data) -> Steps:
    """Runs an agent. The scenarios `bulk`, `aggressor` and `slow-reader` also run it, beside their disturbers."""
    first, second = xp.asarray(data.weights(_SENSES, _WIDTH)), xp.asarray(data.weights(_WIDTH, _ACTIONS))
    pushes, drift = data.normal(_ACTIONS, _SENSES), data.normal(_SENSES)
    senses: Floats = data.normal(1, _SENSES)
    while True:
        scores = yield xp.tanh(xp.asarray(senses) @ first) @ second
        # NumPy simulates the world: the chosen action changes what the agent senses.
        senses = np.sin(senses + pushes[int(scores.argmax())] + drift)


SCENARIO = Scenario(
    name="rl",
    what=f"a policy of {_SENSES} × {_WIDTH} × {_ACTIONS}: uploads what an agent senses, reads the action's scores",
    shows="the latency of a step that waits for its answer",
    program=program,
)
