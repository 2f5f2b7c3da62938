"""Compares the JSON documents of two load tests. Computes ratios, and how certain each ratio is.

The timeline of a document divides the load test into intervals of time. The ratio of a field is its average over the
intervals of the second document, divided by its average over the intervals of the first document. The average is the
median, except for the rate: it is the mean there, because in a slow load no step ends in most intervals. To find how
certain the ratio is, the intervals of each document are drawn again at random, with replacement, and the ratio is
computed from the drawn intervals, 10,000 times (the percentile bootstrap: Efron, 1979). The range from `low` to `high`
holds the middle 95 % of these ratios. If this range includes 1, the documents show no difference beyond noise.
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
    """The second document's average of a field divided by the first document's, and the 95 % range of this ratio."""

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
    """Returns the ratios of rate and latencies.

    Raises ValueError if a document has no measured intervals, or too few steps for a ratio and its range.
    """
    ratios = []
    for field in _COMPARED:
        ours, theirs = _measured(first, field), _measured(second, field)
        if not len(ours) or not len(theirs):
            raise ValueError(f"{field} was not measured on both sides")
        if not ours.any() or not theirs.any():
            raise ValueError(f"{field} is 0 on one side, and 0 has no ratio")
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
    random = np.random.default_rng(0)  # a fixed seed, so that the same documents give the same range
    average = np.mean if field == "steps_per_s" else np.median
    drawn = [average(random.choice(side, (_DRAWS, len(side))), axis=1) for side in (first, second)]
    with np.errstate(divide="ignore", invalid="ignore"):  # a draw may hold no step; 0 / 0 is left out
        low, high = np.nanpercentile(drawn[1] / drawn[0], [2.5, 97.5])
    if not np.isfinite([low, high]).all():
        raise ValueError(f"{field}: the first side has steps in too few intervals to tell how certain the ratio is")
    averages = float(average(first)), float(average(second))
    return Ratio(field, *averages, averages[1] / averages[0], float(low), float(high))


def table(ratios: list[Ratio]) -> str:
    """Returns a table as text, with one line for each ratio."""
    lines = [f"{'':14}{'first':>14}{'second':>14}{'ratio':>9}   95 % interval"]
    for each in ratios:
        mark = "differs" if each.differs else "no difference found"
        lines.append(
            f"{each.field:14}{each.first:14.6g}{each.second:14.6g}{each.ratio:9.3f}"
            f"   {each.low:.3f} … {each.high:.3f}  {mark}"
        )
    return "\n".join(lines)
