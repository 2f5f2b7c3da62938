"""The slowdown of a server that is watched."""

from __future__ import annotations

import pytest

from loadtests.measuring.figure import Verdict
from loadtests.microbenchmarks.limits import held_to_limit
from loadtests.microbenchmarks.service import watching
from loadtests.microbenchmarks.service.watching import WATCHING, _figure
from loadtests.system.context import Context


def test_the_figure_is_the_median_slowdown_and_tells_the_interval() -> None:
    alone = [100.0, 101.0, 99.0, 100.0] * 6
    figure = _figure("watched_rl", {"without": alone, "watched": [rate / 1.01 for rate in alone]})
    assert figure.value == pytest.approx(1.0)
    assert figure.notes[0].startswith("slowdown 1.0100, 95 % interval 1.0100")
    assert held_to_limit(figure, "cuda").verdict is Verdict.OK
    slow = _figure("watched_rl", {"without": alone, "watched": [rate / 1.03 for rate in alone]})
    assert held_to_limit(slow, "cuda").verdict is Verdict.MISSED


@pytest.mark.slow
def test_each_load_is_watched_in_one_window_of_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_PAIRS": 2, "_WINDOW_S": 0.2, "_SETTLING_S": 0.05, "_LOOP_STEPS": 100}.items():
        monkeypatch.setattr(watching, name, value)
    figures = [*WATCHING.measure(Context("cpu"))]
    assert tuple(figure.name for figure in figures) == WATCHING.names
    for figure in figures:
        assert [len(figure.raw[name]) for name in ("without", "watched")] == [2, 2]
        assert min(figure.raw["watched"]) > 0
