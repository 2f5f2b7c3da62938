"""`bulk`: the agents of the scenario `rl`, beside a session that uploads large arrays without a pause."""

from __future__ import annotations

from loadtests.scenarios.agents import rl
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_ELEMENTS = 1 << 26  # 256 MiB of float32
_UPLOADS = 4  # in each step; they have 1 GiB together


def _disturber(xp: Library, data: Data) -> Steps:
    large = data.normal(_ELEMENTS)
    while True:
        uploaded = [xp.asarray(large) for _ in range(_UPLOADS)]
        yield uploaded[-1][-1]


SCENARIO = Scenario(
    name="bulk",
    what=f"agents as in `rl`, beside a session that uploads {_UPLOADS} arrays of 256 MiB again and again",
    shows="how much large transfers delay small steps of other sessions",
    program=rl.program,
    disturber=_disturber,
    peers=(),
)
