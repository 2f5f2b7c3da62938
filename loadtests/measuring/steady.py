"""From when on a loop that is called again and again runs at its steady speed.

The steady time of a call is the median of the last quarter of the calls. It is reached by the first call that takes at
most a fifth longer, where the same is true of the median of it and the next four: one call that the machine holds up
does not count, nor does one lucky call.
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
    """`calls` came before it, and took `after_s` together; from then on a call takes `call_s`."""

    calls: int
    after_s: float
    call_s: float


def steady_from(calls_s: Sequence[float]) -> Steady | None:
    """None while there are too few calls to tell, or where no call is as fast as the last ones."""
    steady_s = median(calls_s[-max(len(calls_s) // _LAST_PART, _CALLS) :])
    for first in range(len(calls_s) - _CALLS + 1):
        if max(calls_s[first], median(calls_s[first : first + _CALLS])) <= _TOLERANCE * steady_s:
            return Steady(first, sum(calls_s[:first]), steady_s)
    return None


def established(calls_s: Sequence[float]) -> Steady | None:
    """The steady speed, once it has lasted as long as it took to reach it, and some seconds: None before.

    A loop whose plans come one after another would otherwise be taken for steady between two of them.
    """
    found = steady_from(calls_s)
    if found is None or sum(calls_s) < 2 * found.after_s + _LEAST_REST_S:
        return None
    return found
