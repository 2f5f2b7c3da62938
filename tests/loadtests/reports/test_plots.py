"""The plots of the HTML report."""

from __future__ import annotations

import numpy as np
from hdrh.histogram import HdrHistogram

from loadtests.reports.latencies import latencies_of
from loadtests.reports.plots import plots_of, recorded_ms
from tests.loadtests.reports.documents import document


def test_the_histogram_shows_every_latency_as_often_as_it_was_measured() -> None:
    found = latencies_of(np.array([1_000_000] * 3 + [2_000_000] + [40_000_000] * 2))
    assert found is not None
    at_ms, counts = recorded_ms(HdrHistogram.decode(found.histogram))
    np.testing.assert_allclose(at_ms, [1, 2, 40], rtol=1e-3)
    assert counts.tolist() == [3, 1, 2]


def test_the_same_document_gives_the_same_plots() -> None:
    result = document([5, 10, 20])
    assert plots_of(result) == plots_of(result)


def test_a_window_in_which_no_step_ended_is_left_out() -> None:
    result = document()
    stalled = [
        {**interval, "steps": 0, "p50_s": None, "p99_s": None, "max_s": None} for interval in result["timeline"][:5]
    ]
    assert len(plots_of({**result, "timeline": [*stalled, *result["timeline"][5:]]})) == 3
