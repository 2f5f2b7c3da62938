"""Finds the call from which on a loop that is called again and again runs at its steady speed.

The steady time of a call is the median of the last quarter of the calls. The first steady call is the first one that
takes at most a fifth longer, if the median of it and the next four calls does so too. So a single slow or fast call
does not change the result.
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
    """The steady speed: `call_s` a call, reached after `calls` calls, which took `after_s` together."""

    calls: int
    after_s: float
    call_s: float


def steady_from(calls_s: Sequence[float]) -> Steady | None:
    """The steady speed in the times of successive calls; None if there are fewer than 5, or none is steady."""
    steady_s = median(calls_s[-max(len(calls_s) // _LAST_PART, _CALLS) :])
    for first in range(len(calls_s) - _CALLS + 1):
        if max(calls_s[first], median(calls_s[first : first + _CALLS])) <= _TOLERANCE * steady_s:
            return Steady(first, sum(calls_s[:first]), steady_s)
    return None


def established(calls_s: Sequence[float]) -> Steady | None:
    """The steady speed, once it has lasted 3 s longer than the time that it took to reach it; None before.

    A loop gets its plans one after another, and could be taken for steady between two plans otherwise.
    """
    found = steady_from(calls_s)
    if found is None or sum(calls_s) < 2 * found.after_s + _LEAST_REST_S:
        return None
    return found
