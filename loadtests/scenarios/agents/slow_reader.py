"""`slow-reader`: the agents of the scenario `rl`, beside a process that asks for many results and stops reading."""

from __future__ import annotations

import os
import signal

from loadtests.scenarios.agents import rl
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_ELEMENTS = 1 << 18  # 1 MiB of float32
_REQUESTS = 64


def _disturber(xp: Library, data: Data) -> Steps:
    x = xp.asarray(data.normal(_ELEMENTS))
    requested = [xp.request(x + number) for number in range(_REQUESTS)]
    os.kill(os.getpid(), signal.SIGSTOP)  # the process stays stopped until the load test kills it
    while True:
        yield x[len(requested)]


SCENARIO = Scenario(
    name="slow-reader",
    what=f"agents as in `rl`, beside a process that asks for {_REQUESTS} results of 1 MiB and is then stopped",
    shows="whether a client that does not read its results delays others, or fills the server's memory",
    program=rl.program,
    disturber=_disturber,
    peers=(),
)
