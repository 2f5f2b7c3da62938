"""`aggressor`: the agents of the scenario `rl`, beside a session that sends ten times as much work and never waits."""

from __future__ import annotations

from itertools import count

from loadtests.scenarios.agents import rl
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_SENSES, _WIDTH = 16, 32
_TIMES = 10
_READ_EVERY = 1000


def _disturber(xp: Library, data: Data) -> Steps:
    first, second = xp.asarray(data.weights(_SENSES, _WIDTH)), xp.asarray(data.weights(_WIDTH, _SENSES))
    x = xp.asarray(data.normal(1, _SENSES))
    for step in count(1):
        for _ in range(_TIMES):
            x = xp.tanh(x @ first) @ second
        yield x if step % _READ_EVERY == 0 else None


SCENARIO = Scenario(
    name="aggressor",
    what=f"agents as in `rl`, beside a session whose steps are {_TIMES} times as long and that never waits for them",
    shows="how much a greedy session delays quiet ones",
    program=rl.program,
    disturber=_disturber,
    peers=(),
)
