"""When a program that is called again and again has settled, without a server."""

from __future__ import annotations

from itertools import chain, repeat

import pytest

from loadtests.measuring.errors import NotWarm
from loadtests.measuring.steady import Steady
from loadtests.microbenchmarks.loops.settling import Settled, call_until_steady, figures


def _steady_until(*calls_s: float, times_planning: int = 0) -> tuple[list[float], Steady]:
    """Calls that take so long, the last of them for ever, while something is being planned as often as it is told."""
    call_s = chain(calls_s, repeat(calls_s[-1]))
    is_planning = chain(repeat(True, times_planning), repeat(False))
    taken_s = [next(call_s)]
    return taken_s, call_until_steady(lambda: next(call_s), taken_s, lambda: next(is_planning))


def test_a_program_is_called_until_its_speed_has_lasted() -> None:
    calls_s, steady = _steady_until(1.0, 0.5, 0.1)
    assert (steady.calls, steady.after_s) == (2, 1.5)
    assert sum(calls_s) == pytest.approx(6.0, abs=0.2)


def test_while_something_is_being_planned_no_speed_is_steady() -> None:
    calls_s, _ = _steady_until(0.1, times_planning=4)
    assert sum(calls_s) == pytest.approx(3.4, abs=0.2)


def test_at_the_deadline_what_has_been_measured_counts() -> None:
    calls_s, steady = _steady_until(5.0, 5.0, 1.0, times_planning=1000)
    assert (len(calls_s), steady.calls) == (7, 2)


def test_a_program_that_is_too_slow_to_settle_has_no_figure() -> None:
    with pytest.raises(NotWarm, match="no steady speed"):
        _steady_until(8.0)


def test_the_worst_scenario_is_told_and_all_of_them_in_notes() -> None:
    calls, seconds = figures(
        [Settled("mlp", Steady(2, 1.5, 0.01), [1.0, 0.5]), Settled("rnn", Steady(4, 0.5, 0.002), [0.1])]
    )
    assert (calls.value, seconds.value) == (4, 1.5)
    assert calls.notes[0] == "mlp: 2 calls in 1.50 s, then 10.0 ms a call"
