"""How near two complex numbers are: by the size of the number, in units of its last place."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_near(actual: Any, expected: Any, *, ulps: float) -> None:
    """Raises AssertionError unless all are within so many units of the last place of their size."""
    limits = np.finfo(expected.dtype)
    with np.errstate(all="ignore"):
        halves = np.abs(actual / 2 - expected / 2), np.abs(expected / 2)  # which do not overflow
    tolerated = ulps * np.maximum(limits.eps * halves[1], limits.smallest_subnormal)
    worst = np.argmax(halves[0] - tolerated) if halves[0].size else 0
    if halves[0].size and not np.all(halves[0] <= tolerated):
        raise AssertionError(f"{actual[worst]} is not near {expected[worst]}")
