"""How the rate of many clients is counted, without clients."""

from __future__ import annotations

import pytest

from loadtests.measuring.waits import Span
from loadtests.microbenchmarks.loops.throughput import mops_a_second


def test_the_rate_counts_from_the_first_begin_to_the_last_end() -> None:
    spans = [Span(0, 1_000_000_000), Span(500_000_000, 2_000_000_000)]
    assert mops_a_second(spans, ops=4_000_000) == pytest.approx(4.0)
