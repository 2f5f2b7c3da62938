"""The slowdown by a reader of the metrics."""

from __future__ import annotations

import pytest

from loadtests.measuring.figure import Verdict
from loadtests.microbenchmarks.limits import held_to_limit
from loadtests.microbenchmarks.service import scraping
from loadtests.microbenchmarks.service.scraping import SCRAPING, _figure
from loadtests.system.context import Context


def test_the_figure_is_the_upper_end_of_the_interval() -> None:
    alone = [100.0, 101.0, 99.0, 100.0] * 6
    figure = _figure({"without": alone, "with": [rate / 1.03 for rate in alone]}, [2.0], 9)
    assert figure.value == pytest.approx(3.0)
    assert held_to_limit(figure, "cpu").verdict is Verdict.OK
    slow = _figure({"without": alone, "with": [rate / 1.06 for rate in alone]}, [2.0], 9)
    assert held_to_limit(slow, "cpu").verdict is Verdict.MISSED


@pytest.mark.slow
def test_the_metrics_are_read_in_one_window_of_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"_PAIRS": 2, "_WINDOW_S": 0.6, "_SCRAPED_AT_S": 0.1, "_WARM_UP_S": 0.1, "_PROCESSES": 1}
    for name, value in changes.items():
        monkeypatch.setattr(scraping, name, value)
    (figure,) = SCRAPING.measure(Context("cpu"))
    assert [len(figure.raw[name]) for name in ("without", "with", "scrapes_ms")] == [2, 2, 2]
    assert min(figure.raw["with"]) > 0
