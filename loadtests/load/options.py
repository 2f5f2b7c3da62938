"""Defines the options of a load test."""

from __future__ import annotations

from typing import NamedTuple

from loadtests.load.windows.settling import MEASURED_WINDOWS
from loadtests.scenarios.scenario import Scenario


class Options(NamedTuple):
    """The options of a load test.

    `seconds` is the length of the measured time, which is divided in three windows. It is None if the sessions end by
    themselves.
    """

    scenario: Scenario
    sessions: int
    processes: int
    seconds: float | None = None
    rate_per_s: float | None = None  # steps a second in all sessions together; None for a closed loop (see `pace`)
    verifies: bool = False
    peer: str | None = None  # the name of another array library that is measured too
    seed: int = 0

    @property
    def window_s(self) -> float:
        assert self.seconds is not None
        return self.seconds / MEASURED_WINDOWS

    def shares(self) -> tuple[tuple[int, ...], ...]:
        """Returns, for each process, the numbers of its sessions."""
        return tuple(tuple(range(first, self.sessions, self.processes)) for first in range(self.processes))
