"""Decides when a lost connection is made again, and when the session is given up. Pure."""

from __future__ import annotations

from fusewire._transport.interface import Attempt

_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 2.0
_DOUBLINGS = 5  # of the delay, which has then passed the longest one
_LONGEST_ATTEMPT_S = 10.0  # so that an attempt that the network swallows is not the only one
_SHORTEST_ATTEMPT_S = 1.0  # of the last attempt, which may therefore end after the time is over


class Resumption:
    """The attempts to resume one session. `limit_s` is how long they are made after a loss; 0 means never."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._ends_at_s: float | None = None  # None while the session is connected
        self._attempts = 0

    @property
    def is_under_way(self) -> bool:
        return self._ends_at_s is not None

    def next_attempt(self, now_s: float, fraction: float) -> Attempt | None:
        """Returns the next attempt after a loss or a failed attempt, or None once the time is over.

        `fraction`, from 0 to 1, spreads the attempts of many clients that have lost their connections at once.
        """
        if not self.limit_s:
            return None
        if self._ends_at_s is None:
            self._ends_at_s, self._attempts = now_s + self.limit_s, 0
        left_s = self._ends_at_s - now_s
        if left_s <= 0:
            return None
        delay_s = min(_FIRST_DELAY_S * 2**self._attempts, _LONGEST_DELAY_S) * (1 + fraction) / 2
        self._attempts = min(self._attempts + 1, _DOUBLINGS)
        return Attempt(delay_s, min(max(left_s - delay_s, _SHORTEST_ATTEMPT_S), _LONGEST_ATTEMPT_S))

    def succeed(self) -> None:
        """Notes that the session is connected."""
        self._ends_at_s = None
