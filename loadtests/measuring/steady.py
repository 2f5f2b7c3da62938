"""Finds the call at which a loop, called again and again, reaches its steady speed.

The steady time of a call is the median of the last quarter of the calls. A call is steady if it takes at most a fifth
longer than this time, and the median of this call and the next four does so too. The first steady call is the result.
A single slow or fast call does not change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

_TOLERANCE = 1.2
_CALLS = 5
_LAST_PART = 4  # a quarter
_LEAST_REST_S = 3.0


class Steady(NamedTuple):
    """The steady speed is one call in `call_s`. It was reached after `calls` calls, which took `after_s` together."""

    calls: int
    after_s: float
    call_s: float


def steady_from(calls_s: Sequence[float]) -> Steady | None:
    """Finds the steady speed in the times of successive calls. Returns None for 1 to 4 calls, or if none is steady."""
    steady_s = median(calls_s[-max(len(calls_s) // _LAST_PART, _CALLS) :])
    for first in range(len(calls_s) - _CALLS + 1):
        if max(calls_s[first], median(calls_s[first : first + _CALLS])) <= _TOLERANCE * steady_s:
            return Steady(first, sum(calls_s[:first]), steady_s)
    return None


def established(calls_s: Sequence[float]) -> Steady | None:
    """Returns the steady speed once it has lasted 3 s longer than the time before it was reached. Returns None earlier.

    Without this delay, a loop could seem steady between two of its plans, because plans come one after another.
    """
    found = steady_from(calls_s)
    if found is None or sum(calls_s) < 2 * found.after_s + _LEAST_REST_S:
        return None
    return found
