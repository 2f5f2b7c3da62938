"""Computes when each step of a session is to begin. Pure: uses no clock and no thread.

In a closed loop a step begins when the step before it has ended. In an open loop steps begin at a rate, whether or not
earlier steps have ended. The latency of a step counts from its intended begin. So a stall counts for all steps that
should have begun meanwhile, and not only for the step that stalled (G. Tene: How NOT to Measure Latency, 2013).
"""

from __future__ import annotations

from typing import NamedTuple

_NS_A_SECOND = 1_000_000_000


class Pace(NamedTuple):
    """The pace of one session. `rate_per_s` is the rate of all sessions together, or None in a closed loop.

    The sessions' steps are spread evenly: session i of n begins its k-th step at (k × n + i) / rate.
    """

    rate_per_s: float | None
    session: int
    sessions: int

    def intended_ns(self, step: int, began_ns: int, now_ns: int) -> int:
        """Returns the intended begin of a step of a load that began at `began_ns`, or `now_ns` in a closed loop."""
        if self.rate_per_s is None:
            return now_ns
        position = step * self.sessions + self.session
        return began_ns + round(position * _NS_A_SECOND / self.rate_per_s)
