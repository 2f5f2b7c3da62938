"""Compares the JSON documents of two load tests. Computes ratios, and how certain each ratio is.

The timeline of a document divides the load test into intervals of time. The ratio of a field is its median over the
intervals of the second document, divided by its median over the intervals of the first document. To find how certain
the ratio is, the intervals of each document are drawn again at random, with replacement, and the ratio is computed from
the drawn intervals, 10,000 times (the percentile bootstrap: Efron, 1979). The range from `low` to `high` holds the
middle 95 % of these ratios. If this range includes 1, the documents show no difference beyond noise.
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
    """The second document's median of a field divided by the first document's, and the 95 % range of this ratio."""

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
    """Returns the ratios of rate and latencies. Raises ValueError if a document has no measured intervals."""
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
    random = np.random.default_rng(0)  # a fixed seed, so that the same documents give the same range
    drawn = [np.median(random.choice(side, (_DRAWS, len(side))), axis=1) for side in (first, second)]
    low, high = np.percentile(drawn[1] / drawn[0], [2.5, 97.5])
    medians = float(np.median(first)), float(np.median(second))
    return Ratio(field, *medians, medians[1] / medians[0], float(low), float(high))


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
