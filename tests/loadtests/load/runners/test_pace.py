"""When the steps of a session are to begin."""

from __future__ import annotations

from loadtests.load.runners.pace import Pace


def test_in_a_closed_loop_a_step_begins_now() -> None:
    assert Pace(None, session=1, sessions=2).intended_ns(7, began_ns=100, now_ns=1234) == 1234


def test_in_an_open_loop_the_steps_of_all_sessions_are_spread_evenly() -> None:
    paces = [Pace(1000.0, session, sessions=2) for session in range(2)]
    intended_ns = [[pace.intended_ns(step, began_ns=5, now_ns=0) for step in range(3)] for pace in paces]
    assert intended_ns == [[5, 2_000_005, 4_000_005], [1_000_005, 3_000_005, 5_000_005]]
