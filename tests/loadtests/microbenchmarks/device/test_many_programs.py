"""How the memory of many programs is told, without a server."""

from __future__ import annotations

import pytest

from loadtests.measuring.errors import NotMeasured
from loadtests.measuring.figure import Verdict
from loadtests.microbenchmarks.device.many_programs import Held, check_captured, figures
from loadtests.microbenchmarks.limits import held_to_limit


def test_the_growth_is_the_drivers_and_the_most_graphs_are_told() -> None:
    memory, graphs = figures([Held(1.0, 500.0, 64, 900, 836), Held(1.5, 900.0, 60, 2_700, 2_640)], 1_000)
    assert (memory.value, held_to_limit(memory, "cuda").verdict) == (400.0, Verdict.MISSED)
    assert (graphs.value, held_to_limit(graphs, "cuda").verdict) == (64, Verdict.OK)
    assert graphs.notes == ("2,700 captured, 2,640 dropped",)


def test_without_a_gpu_the_growth_is_that_of_the_servers_pool() -> None:
    memory, _ = figures([Held(1.0, None, 0, 0, 0), Held(1.5, None, 0, 0, 0)], 50)
    assert memory.value == 0.5


def test_programs_that_capture_no_graphs_measure_nothing() -> None:
    check_captured(Held(1.0, 500.0, 64, 1_000, 936), 1_000)
    with pytest.raises(NotMeasured, match="1,000 programs captured 0 graphs"):
        check_captured(Held(1.0, 500.0, 0, 0, 0), 1_000)
