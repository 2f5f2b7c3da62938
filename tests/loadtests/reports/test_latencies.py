"""Percentiles from an HDR histogram."""

from __future__ import annotations

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from loadtests.reports.latencies import latencies_of

_MS = 1_000_000


def test_percentiles_are_those_of_the_steps_to_three_digits() -> None:
    latency_ns = np.random.default_rng(0).permutation([1 * _MS] * 900 + [5 * _MS] * 90 + [40 * _MS] * 10)
    found = latencies_of(latency_ns)
    assert found is not None
    assert [found.p50_s, found.p90_s, found.p99_s, found.p999_s, found.max_s] == pytest.approx(
        [0.001, 0.001, 0.005, 0.04, 0.04], rel=1e-3
    )
    assert found.mean_s == pytest.approx(latency_ns.mean() / 1e9)


def test_the_histogram_can_be_read_again() -> None:
    found = latencies_of(np.array([1 * _MS, 2 * _MS, 3 * _MS]))
    assert found is not None
    assert HdrHistogram.decode(found.histogram).get_total_count() == 3


def test_no_steps_have_no_percentiles() -> None:
    assert latencies_of(np.array([], np.int64)) is None
