"""`mixed`: eight different programs in turn. Each session begins with a different one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_WIDTH = 64


def _program(xp: Library, data: Data) -> Steps:
    x = xp.asarray(data.normal(1, _WIDTH))
    weights, bias = xp.asarray(data.weights(_WIDTH, _WIDTH)), xp.asarray(data.normal(_WIDTH))
    programs: tuple[Callable[[Any], Any], ...] = (
        lambda x: xp.tanh(x @ weights + bias),
        lambda x: xp.sigmoid(x * bias) - x,
        lambda x: xp.relu(x @ weights) @ weights,
        lambda x: (x - x.mean()) / xp.sqrt((x * x).mean() + 1),
        lambda x: xp.exp(-(x * x)) + bias,
        lambda x: xp.tanh(xp.tanh(xp.tanh(x + bias) + bias) + bias),
        lambda x: (x[:, : _WIDTH // 2] * x[:, _WIDTH // 2 :]).sum() - x,
        lambda x: xp.exp(x - x.max()) / xp.exp(x - x.max()).sum(),
    )
    number = data.session
    while True:
        x = xp.tanh(programs[number % len(programs)](x))
        number += 1
        yield x


SCENARIO = Scenario(
    name="mixed",
    what="eight small programs in turn; each session begins at another one and reads every result",
    shows="whether a launch holds every session that waits with the same program",
    program=_program,
    sessions=16,
)
