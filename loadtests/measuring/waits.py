"""How long one waits for steps that follow one another, whatever moment one looks at.

Steps that begin when the one before has ended are rare while they are slow: a standstill of half a second is one step
among hundreds, and a percentile of the steps never sees it. So each step weighs as much as it lasts. Of 1 % of all
moments the step that is under way then takes longer than the 99th percentile, as those would find who come at times of
their own.

A machine that many share stands still now and then, whatever runs on it. So each of several spans of time has its own
percentile, and their median stands for all: what happens in most spans counts, what happens in one does not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """A time on the clock that processes share."""

    began_ns: int
    ended_ns: int

    @property
    def length_ns(self) -> int:
        return self.ended_ns - self.began_ns


def waits_us(steps: Sequence[Span], spans: Sequence[Span], percent: float) -> list[float]:
    """Of each span the shortest step such that in `percent` of its moments the step under way takes no longer.

    The steps are in order and never two at once. One that reaches beyond a span weighs as much as lies within, and is
    as long as it is. Raises ValueError for a span in which no step was under way.
    """
    return [_wait_us(steps_within(steps, span), span, percent) for span in spans]


def steps_within(steps: Sequence[Span], within: Span) -> Sequence[Span]:
    """Those of which a part lies within the span."""
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
    """How long both last at once."""
    return min(one.ended_ns, other.ended_ns) - max(one.began_ns, other.began_ns)
