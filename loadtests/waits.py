"""How long one waits for steps that follow one another, whatever moment one looks at.

Steps that begin when the one before has ended are rare while they are slow: a standstill of half a second is one step
among hundreds, and a percentile of the steps never sees it. So each step weighs as much as it lasts. Of 1 % of all
moments the step that is under way then takes longer than the 99th percentile, as those would find who come at times of
their own.

A machine that many share stands still now and then, whatever runs on it. So each of several spans of time has its own
percentile, and the median of these stands for all: what happens in most spans counts, what happens in one does not.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from loadtests.figure import Spread
from loadtests.turns import Summary, percentile


class Span(NamedTuple):
    """A time on the clock that processes share."""

    began_ns: int
    ended_ns: int

    @property
    def length_ns(self) -> int:
        return self.ended_ns - self.began_ns


def wait_us(steps: Sequence[Span], within: Span, percent: float) -> float:
    """The shortest step such that of `percent` of all moments within the span the step under way takes no longer.

    A step that reaches beyond the span weighs as much as lies within, and is as long as it is. Raises ValueError if
    no step was under way.
    """
    lengths = sorted((step.length_ns, _shared_ns(step, within)) for step in steps_within(steps, within))
    left_ns = sum(weight_ns for _, weight_ns in lengths) * percent / 100
    for length_ns, weight_ns in lengths:
        left_ns -= weight_ns
        if left_ns <= 0:
            return length_ns / 1e3
    raise ValueError("no step was under way within the span")


def typical_wait_us(steps: Sequence[Span], spans: Sequence[Span], percent: float) -> Summary:
    """The median of the spans' percentiles, and how far these spread."""
    waits_us = [wait_us(steps, span, percent) for span in spans]
    return Summary(statistics.median(waits_us), Spread(percentile(waits_us, 10), percentile(waits_us, 90)))


def steps_within(steps: Sequence[Span], within: Span) -> list[Span]:
    """Those of which a part lies within the span."""
    return [step for step in steps if _shared_ns(step, within) > 0]


def _shared_ns(one: Span, other: Span) -> int:
    """How long both last at once; not positive if never."""
    return min(one.ended_ns, other.ended_ns) - max(one.began_ns, other.began_ns)
