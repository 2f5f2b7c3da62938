"""Computes percentiles of latencies from an HDR histogram, which keeps three digits of each value. Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hdrh.histogram import HdrHistogram

from loadtests.load.windows.samples import Integers

_LEAST_NS, _MOST_NS, _DIGITS = 1_000, 3_600_000_000_000, 3


class Latencies(NamedTuple):
    """Percentiles in seconds. `histogram` is the encoded HDR histogram of nanoseconds (format V2, base64)."""

    p50_s: float
    p90_s: float
    p99_s: float
    p999_s: float
    max_s: float
    mean_s: float
    histogram: str


def latencies_of(latency_ns: Integers) -> Latencies | None:
    """Returns the percentiles of latencies, or None if there are none. More than an hour counts as an hour."""
    if not len(latency_ns):
        return None
    histogram = HdrHistogram(_LEAST_NS, _MOST_NS, _DIGITS)
    values, counts = np.unique(np.clip(latency_ns, _LEAST_NS, _MOST_NS), return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        histogram.record_value(value, count)
    p50_s, p90_s, p99_s, p999_s, max_s = (
        histogram.get_value_at_percentile(percent) / 1e9 for percent in (50, 90, 99, 99.9, 100)
    )
    encoded = histogram.encode().decode("ascii")
    return Latencies(p50_s, p90_s, p99_s, p999_s, max_s, float(latency_ns.mean()) / 1e9, encoded)
