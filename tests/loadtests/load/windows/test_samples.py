"""Steps as arrays, and their windows."""

from __future__ import annotations

from loadtests.load.windows.samples import Step, joined, of_steps, window, windows

_SECOND = 1_000_000_000


def _step(began_ns: int, ended_ns: int) -> Step:
    return Step(0, began_ns, began_ns, began_ns, began_ns, ended_ns)


def _steps(*ended_s: float, latency_s: float = 0.25) -> list[Step]:
    return [_step(round((end - latency_s) * _SECOND), round(end * _SECOND)) for end in ended_s]


def test_a_window_counts_the_steps_that_ended_in_it() -> None:
    found = window(of_steps(_steps(0.5, 1.0, 1.5, 2.0)), 0, _SECOND, 2 * _SECOND)
    assert (found.began_s, found.length_s, found.steps, found.steps_per_s) == (1.0, 1.0, 2, 2.0)
    assert (found.p50_s, found.p99_s, found.max_s) == (0.25, 0.25, 0.25)


def test_a_window_without_a_step_has_no_latency() -> None:
    found = window(of_steps([]), 0, 0, _SECOND)
    assert (found.steps, found.p50_s, found.p99_s, found.max_s) == (0, None, None, None)


def test_windows_of_equal_length_hold_every_step_once() -> None:
    found = windows(of_steps(_steps(0.5, 1.0, 1.5, 2.5)), 0, 0, 3 * _SECOND, 3)
    assert [each.steps for each in found] == [1, 2, 1]


def test_a_step_that_a_stall_holds_beyond_the_end_is_under_way_within() -> None:
    stalled = of_steps(_steps(9.0, latency_s=7.5))
    assert not stalled.ended_within(_SECOND, 2 * _SECOND)
    assert len(stalled.under_way_within(_SECOND, 2 * _SECOND)) == 1


def test_samples_of_no_session_are_no_steps() -> None:
    assert len(joined([])) == 0
    assert len(joined([of_steps(_steps(1.0)), of_steps([])])) == 1
