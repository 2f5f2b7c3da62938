"""Computes the ratio of two ways that were measured in pairs, and how certain the ratio is.

The two measurements of a pair follow each other, so what disturbs the machine for longer than a pair changes both. The
ratio is the median of the ratios of all pairs. To find how certain it is, pairs are drawn again at random, with
replacement, 10,000 times (the percentile bootstrap: Efron, 1979). The range from `low` to `high` holds the middle 95 %
of the medians.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_DRAWS = 10_000


class PairedRatio(NamedTuple):
    """The median ratio of the second measurement of a pair to the first, and its 95 % interval."""

    ratio: float
    low: float
    high: float


def paired_ratio(first: Sequence[float], second: Sequence[float]) -> PairedRatio:
    """Returns the ratio of `second` to `first`, which hold one measurement above 0 for each pair."""
    ratios = np.array(second, np.float64) / np.array(first, np.float64)
    random = np.random.default_rng(0)  # a fixed seed, so that the same measurements give the same interval
    drawn = np.median(random.choice(ratios, (_DRAWS, len(ratios))), axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return PairedRatio(float(np.median(ratios)), float(low), float(high))
