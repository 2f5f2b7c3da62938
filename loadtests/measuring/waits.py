"""Computes percentiles of the lengths of successive steps, where each step is weighted with its length.

Each step begins when the step before it has ended. So a standstill of half a second is only one step among hundreds,
and a percentile without weights misses it. With weights, the 99th percentile tells what a user meets at a random
moment: at 1 % of all moments, the step that is under way takes longer than the 99th percentile.

A shared machine stands still now and then, whatever runs on it. So the percentile is computed for each of several spans
of time, and the median of these percentiles is reported. A standstill in one span does not change this median, but
standstills in most spans do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """An interval on the monotonic clock, which is the same in all processes."""

    began_ns: int
    ended_ns: int

    @property
    def length_ns(self) -> int:
        return self.ended_ns - self.began_ns


def waits_us(steps: Sequence[Span], spans: Sequence[Span], percent: float) -> list[float]:
    """Returns a percentile in µs for each span: at `percent` % of its moments the step under way is not longer.

    Steps must be in order and must not overlap. A step that is only partly within a span counts with its whole length,
    and its weight is the length of the part within. Raises ValueError for a span without a step.
    """
    return [_wait_us(steps_within(steps, span), span, percent) for span in spans]


def steps_within(steps: Sequence[Span], within: Span) -> Sequence[Span]:
    """Returns the steps that lie partly or wholly within the span."""
    first = bisect_right(steps, within.began_ns, key=lambda step: step.ended_ns)
    end = bisect_left(steps, within.ended_ns, key=lambda step: step.began_ns)
    return steps[first:end]


def _wait_us(steps: Sequence[Span], within: Span, percent: float) -> float:
    by_length = sorted((step.length_ns, _shared_ns(step, within)) for step in steps)
    left_ns = sum(weight_ns for _, weight_ns in by_length) * percent / 100
    for length_ns, weight_ns in by_length:
        left_ns -= weight_ns
        if left_ns <= 0:
            return length_ns / 1e3
    raise ValueError("no step was under way within the span")


def _shared_ns(one: Span, other: Span) -> int:
    """Returns the length of the overlap of two spans."""
    return min(one.ended_ns, other.ended_ns) - max(one.began_ns, other.began_ns)
