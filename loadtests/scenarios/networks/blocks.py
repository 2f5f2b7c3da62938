"""`blocks`: eight independent networks of four layers on one input."""

from __future__ import annotations

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_BLOCKS, _LAYERS, _WIDTH, _BATCH = 8, 4, 64, 16


def _program(xp: Library, data: Data) -> Steps:
    blocks = [[xp.asarray(data.weights(_WIDTH, _WIDTH)) for _ in range(_LAYERS)] for _ in range(_BLOCKS)]
    x = xp.asarray(data.normal(_BATCH, _WIDTH))
    while True:
        answers = []
        for block in blocks:
            y = x
            for weights in block:
                y = xp.relu(y @ weights)
            answers.append(y.sum(axis=0))
        total = sum(answers[1:], answers[0])
        x = xp.tanh(x + total / 100)
        yield total


SCENARIO = Scenario(
    name="blocks",
    what=f"{_BLOCKS} networks of {_LAYERS} layers of width {_WIDTH} on one batch of {_BATCH}; reads the sum",
    shows="whether independent products become rows of one launch",
    program=_program,
)
