"""Decides when a load has settled: when three windows in a row differ from their mean by at most 10 %. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.load.windows.samples import Window

MEASURED_WINDOWS = 3
MOST_WINDOWS = 12
TOLERANCE = 0.1


def has_settled(windows: Sequence[Window]) -> bool:
    """Whether the rates of the last three windows are within 10 % of their mean, and so are the median latencies."""
    last = windows[-MEASURED_WINDOWS:]
    if len(last) < MEASURED_WINDOWS:
        return False
    medians = [window.p50_s for window in last if window.p50_s is not None]
    return len(medians) == len(last) and _is_even([window.steps_per_s for window in last]) and _is_even(medians)


def _is_even(numbers: Sequence[float]) -> bool:
    mean = sum(numbers) / len(numbers)
    return all(abs(number - mean) <= TOLERANCE * mean for number in numbers)
