"""What a load test is asked to do."""

from __future__ import annotations

from typing import NamedTuple

from loadtests.load.settling import MEASURED_WINDOWS
from loadtests.scenarios.scenario import Scenario


class Options(NamedTuple):
    """The options of a load test. `seconds` is the time that is measured: three windows together."""

    scenario: Scenario
    sessions: int
    processes: int
    seconds: float = 6.0
    rate_per_s: float | None = None  # of all sessions together; None is a closed loop
    verifies: bool = False
    peer: str | None = None  # the name of a library
    seed: int = 0

    @property
    def window_s(self) -> float:
        return self.seconds / MEASURED_WINDOWS

    def shares(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the sessions of each process."""
        return tuple(tuple(range(first, self.sessions, self.processes)) for first in range(self.processes))
