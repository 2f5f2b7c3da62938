"""Compares the documents of two load tests: ratios with intervals that tell noise from a difference.

A load test is divided in intervals of time. The ratio is that of the medians over the intervals. Its interval holds the
middle 95 % of the ratios that come out if the intervals of time of each side are drawn again at random, with
replacement (the percentile bootstrap: Efron, 1979). If the interval includes 1, the two sides cannot be told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_DRAWS = 10_000
_COMPARED = ("steps_per_s", "p50_s", "p99_s", "max_s")

Numbers = npt.NDArray[np.float64]


class Ratio(NamedTuple):
    """The second document's number divided by that of the first, with the 95 % interval."""

    field: str
    first: float
    second: float
    ratio: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        return not self.low <= 1 <= self.high


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Ratio]:
    """The ratios of rate and latencies of the measured intervals. Raises ValueError if one side has no intervals."""
    ratios = []
    for field in _COMPARED:
        ours, theirs = _measured(first, field), _measured(second, field)
        if not len(ours) or not len(theirs):
            raise ValueError(f"{field} was not measured on both sides")
        ratios.append(_ratio(field, ours, theirs))
    return ratios


def _measured(document: Mapping[str, Any], field: str) -> Numbers:
    intervals = [interval for interval in document["timeline"] if interval["is_measured"]]
    if field == "steps_per_s":
        numbers = [interval["steps"] / interval["length_s"] for interval in intervals]
    else:
        numbers = [interval[field] for interval in intervals if interval[field] is not None]
    return np.array(numbers, np.float64)


def _ratio(field: str, first: Numbers, second: Numbers) -> Ratio:
    random = np.random.default_rng(0)  # the same documents give the same interval
    drawn = [np.median(random.choice(side, (_DRAWS, len(side))), axis=1) for side in (first, second)]
    low, high = np.percentile(drawn[1] / drawn[0], [2.5, 97.5])
    medians = float(np.median(first)), float(np.median(second))
    return Ratio(field, *medians, medians[1] / medians[0], float(low), float(high))


def table(ratios: list[Ratio]) -> str:
    """One line for each ratio."""
    lines = [f"{'':14}{'first':>14}{'second':>14}{'ratio':>9}   95 % interval"]
    for each in ratios:
        mark = "differs" if each.differs else "no difference found"
        lines.append(
            f"{each.field:14}{each.first:14.6g}{each.second:14.6g}{each.ratio:9.3f}"
            f"   {each.low:.3f} … {each.high:.3f}  {mark}"
        )
    return "\n".join(lines)
