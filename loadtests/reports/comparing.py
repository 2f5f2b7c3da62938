"""Says whether the second of two load tests is worse: in its rate, its latencies, its stalls, or in what failed. Pure.

Percentiles are those of all measured steps together, from the histograms of the two documents. Each has the range
that an order statistic has with a probability of 95 % (the ranks n·p ± 1.96·√(n·p·(1 − p)): W. Conover, Practical
Nonparametric Statistics, 3.2), and a rate that of a Poisson count. A number differs if the whole range of the ratio is
more than 10 % away from 1, because the windows of one load differ by as much (`settling`).

Stalls are too few to move a percentile. So the intervals of the timelines are counted in which a step took longer than
four times the first document's p99. Fisher's exact test (R. Fisher, Statistical Methods for Research Workers, 21.02)
gives the probability that chance alone put so many of them in the second document. Intervals are counted and not steps,
because one stall delays many steps. There are more stalls if this probability is at most 1/8: so three stalls in
30 intervals beside none are found, and no fewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import comb, exp, sqrt
from typing import Any, NamedTuple

from hdrh.histogram import HdrHistogram

from loadtests.load.windows.settling import TOLERANCE

_NORMAL_97_5 = 1.96  # the 97.5 % quantile of the normal distribution
_PERCENTILES = {"p50_s": 50.0, "p90_s": 90.0, "p99_s": 99.0, "p999_s": 99.9}
_STALL_TIMES, _STALL_OF = 4, "p99_s"
_MOST_CHANCE = 1 / 8
_ASKED = ("scenario", "sessions", "processes", "rate_per_s", "seconds", "seed")


class Verdict(Enum):
    """What the second document is, compared with the first."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "no difference found"


class Ratio(NamedTuple):
    """The second document's number divided by the first document's, and the 95 % range of this ratio."""

    field: str
    first: float
    second: float
    low: float
    high: float

    @property
    def ratio(self) -> float:
        return self.second / self.first

    @property
    def verdict(self) -> Verdict:
        more_is_worse = self.field != "steps_per_s"
        if self.low > 1 + TOLERANCE:
            return Verdict.WORSE if more_is_worse else Verdict.BETTER
        if self.high < 1 / (1 + TOLERANCE):
            return Verdict.BETTER if more_is_worse else Verdict.WORSE
        return Verdict.SAME


class Stalls(NamedTuple):
    """The measured intervals of each document, and how many of them have a step that took longer than `bound_s`."""

    bound_s: float
    first: int
    first_of: int
    second: int
    second_of: int

    @property
    def chance(self) -> float:
        """The probability that at least so many of all stalls are in the second document, if both are the same load."""
        stalls, intervals = self.first + self.second, self.first_of + self.second_of
        ways = (comb(self.second_of, k) * comb(self.first_of, stalls - k) for k in range(self.second, stalls + 1))
        return sum(ways) / comb(intervals, stalls)

    @property
    def verdict(self) -> Verdict:
        if self.chance <= _MOST_CHANCE:
            return Verdict.WORSE
        mirrored = Stalls(self.bound_s, self.second, self.second_of, self.first, self.first_of)
        return Verdict.BETTER if mirrored.chance <= _MOST_CHANCE else Verdict.SAME


class Comparison(NamedTuple):
    """Everything that was compared. `is_worse` says whether the second document is worse in anything."""

    ratios: tuple[Ratio, ...]
    stalls: Stalls
    failures: tuple[str, ...]  # problems of the second document that the first one does not have
    asked: tuple[str, ...]  # a sentence for each difference in what was asked for

    @property
    def is_worse(self) -> bool:
        verdicts = [ratio.verdict for ratio in self.ratios] + [self.stalls.verdict]
        return Verdict.WORSE in verdicts or bool(self.failures)


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> Comparison:
    """Compares two documents. Raises ValueError if no step or no interval was measured in one of them."""
    for side, document in (("first", first), ("second", second)):
        if not document["steps"] or not _longest_s(document):
            raise ValueError(f"the {side} result has no measured step")
    return Comparison(
        (_rates(first, second), *_percentiles(first, second)),
        _stalls(first, second),
        tuple(problem for problem in second["problems"] if problem not in first["problems"]),
        tuple(f"{name}: {first[name]} and {second[name]}" for name in _ASKED if first[name] != second[name]),
    )


def _rates(first: Mapping[str, Any], second: Mapping[str, Any]) -> Ratio:
    one, other = (float(document["steps_per_s"]) for document in (first, second))
    spread = exp(_NORMAL_97_5 * sqrt(1 / first["steps"] + 1 / second["steps"]))
    return Ratio("steps_per_s", one, other, other / one / spread, other / one * spread)


def _percentiles(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Ratio]:
    histograms = [HdrHistogram.decode(document["histogram"]) for document in (first, second)]
    ratios = []
    for field, percent in _PERCENTILES.items():
        (low, at, high), (second_low, second_at, second_high) = (_range_s(each, percent) for each in histograms)
        ratios.append(Ratio(field, at, second_at, second_low / high, second_high / low))
    return ratios


def _range_s(histogram: HdrHistogram, percent: float) -> tuple[float, float, float]:
    """Returns the percentile, between the bounds of its 95 % range."""
    half = _NORMAL_97_5 * sqrt(percent * (100 - percent) / histogram.get_total_count())
    percents = (max(percent - half, 0.0), percent, min(percent + half, 100.0))
    low, at, high = (histogram.get_value_at_percentile(each) / 1e9 for each in percents)
    return low, at, high


def _stalls(first: Mapping[str, Any], second: Mapping[str, Any]) -> Stalls:
    bound_s = _STALL_TIMES * first[_STALL_OF]
    counts = []
    for document in (first, second):
        longest_s = _longest_s(document)
        counts += [sum(each is not None and each > bound_s for each in longest_s), len(longest_s)]
    return Stalls(bound_s, *counts)


def _longest_s(document: Mapping[str, Any]) -> list[float | None]:
    """Returns the longest step that ended in each measured interval, or None where no step ended."""
    return [interval["max_s"] for interval in document["timeline"] if interval["is_measured"]]


def table(compared: Comparison) -> str:
    """Returns the comparison as text, with one line for each thing that was compared."""
    lines = [f"asked for differently: {each}" for each in compared.asked]
    lines.append(f"{'':14}{'first':>14}{'second':>14}{'ratio':>9}   95 % range")
    lines += [_line(ratio) for ratio in compared.ratios]
    stalls = compared.stalls
    counts = (f"{count} of {intervals}" for count, intervals in zip(stalls[1::2], stalls[2::2], strict=True))
    lines.append(
        f"{'stalls':14}{next(counts):>14}{next(counts):>14}{'':9}   intervals with a step longer than"
        f" {stalls.bound_s:.4g} s, by chance with probability {stalls.chance:.3f}  {stalls.verdict.value}"
    )
    lines += [f"failed in the second only: {problem}" for problem in compared.failures]
    return "\n".join([*lines, "the second is worse" if compared.is_worse else "the second is not worse"])


def _line(ratio: Ratio) -> str:
    numbers = f"{ratio.field:14}{ratio.first:14.6g}{ratio.second:14.6g}{ratio.ratio:9.3f}"
    return f"{numbers}   {ratio.low:.3f} … {ratio.high:.3f}  {ratio.verdict.value}"
