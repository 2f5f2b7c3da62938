"""Lists the scenarios of each backend, in the order of the table."""

from __future__ import annotations

from collections.abc import Mapping

from loadtests.figures.bulk_transfer import BULK_TRANSFER
from loadtests.figures.cold_start import COLD_START
from loadtests.figures.far_ahead import FAR_AHEAD
from loadtests.figures.fleet_throughput import FLEET
from loadtests.figures.many_clients import MANY_CLIENTS
from loadtests.figures.planning import PLANNING
from loadtests.figures.pointwise import POINTWISE
from loadtests.figures.recording import RECORDING
from loadtests.figures.rnn import RNN_B1_H256, RNN_B64_H256, RNN_B64_H1024
from loadtests.figures.round_trip import ROUND_TRIP
from loadtests.figures.wire import WIRE
from loadtests.system.scenario import Scenario

_ON_EVERY_BACKEND = (
    RECORDING,
    WIRE,
    ROUND_TRIP,
    BULK_TRANSFER,
    POINTWISE,
    RNN_B1_H256,
    MANY_CLIENTS,
    PLANNING,
    COLD_START,
    FAR_AHEAD,
)

SCENARIOS: Mapping[str, tuple[Scenario, ...]] = {
    "cpu": _ON_EVERY_BACKEND,
    "cuda": (*_ON_EVERY_BACKEND, RNN_B64_H256, RNN_B64_H1024, FLEET),
}


def choose(backend: str, names: frozenset[str]) -> tuple[Scenario, ...]:
    """The scenarios that measure any of the named figures; all if `names` is empty. Raises ValueError for others."""
    scenarios = SCENARIOS[backend]
    known = {name for scenario in scenarios for name in scenario.names}
    if names - known:
        raise ValueError(f"unknown figure {', '.join(sorted(names - known))}; known are {', '.join(sorted(known))}")
    return tuple(scenario for scenario in scenarios if not names or names & set(scenario.names))
