"""What the figures of never-seen loops say, without a server."""

from __future__ import annotations

import random

from loadtests.measuring.figure import Verdict
from loadtests.microbenchmarks.limits import held_to_limit
from loadtests.microbenchmarks.loops import never_seen
from loadtests.microbenchmarks.loops.never_seen import Called, draw_cells

_CALLED = [Called([2.0, 1.0, 1.5], 0.2), Called([4.0, 6.0, 1.0], None), Called([3.0, 3.0, 3.0], 0.4)]


def test_no_two_loops_have_the_same_body_and_each_has_5_to_10_ops() -> None:
    cells = draw_cells(random.Random(3), 100, range(5, 11))
    assert len(set(cells)) == 100
    assert {1 + len(cell) for cell in cells} == {5, 6, 7, 8, 9, 10}


def test_the_median_and_the_worst_first_call_are_told() -> None:
    figure = never_seen._first_figure(_CALLED)
    assert (figure.value, figure.unit) == (3.0, "ms")
    assert figure.notes == ("worst of 3 loops 4.00 ms",)


def test_the_worst_later_call_of_all_loops_is_told() -> None:
    figure = held_to_limit(never_seen._later_figure(_CALLED), "cuda")
    assert (figure.value, figure.verdict) == (1.5, Verdict.MISSED)
    assert figure.raw["loop 1"] == [4.0, 6.0, 1.0]


def test_a_loop_without_a_plan_says_nothing_about_plans() -> None:
    assert never_seen._plan_figure(_CALLED).raw["s"] == [0.2, 0.4]
