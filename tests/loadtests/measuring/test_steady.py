"""When a loop that is called again and again has reached its steady speed."""

from __future__ import annotations

import pytest

from loadtests.measuring.steady import established, steady_from


def test_a_loop_that_is_steady_from_the_start_took_nothing_to_get_there() -> None:
    found = steady_from([0.1] * 20)
    assert found is not None
    assert (found.calls, found.after_s, found.call_s) == (0, 0, 0.1)


def test_the_calls_before_count_and_so_does_their_time() -> None:
    found = steady_from([2.0, 1.0, 1.0, *[0.1] * 30])
    assert found is not None
    assert (found.calls, found.after_s) == (3, 4.0)


def test_a_call_that_the_machine_holds_up_later_does_not_count() -> None:
    found = steady_from([1.0, *[0.1] * 10, 3.0, *[0.1] * 30])
    assert found is not None
    assert found.calls == 1


def test_a_lucky_call_does_not_count() -> None:
    found = steady_from([1.0, 0.1, 1.0, 1.0, 1.0, 1.0, *[0.1] * 30])
    assert found is not None
    assert found.calls == 6


def test_a_fifth_more_than_the_last_calls_is_as_fast() -> None:
    found = steady_from([0.13, *[0.119] * 10, *[0.1] * 30])
    assert found is not None
    assert found.calls == 1


def test_too_few_calls_tell_nothing() -> None:
    assert steady_from([0.1] * 4) is None


def test_a_speed_that_has_lasted_as_long_as_it_took_to_reach_it_and_some_seconds_is_established() -> None:
    slow = [1.0] * 5
    assert established([*slow, *[0.1] * 79]) is None
    found = established([*slow, *[0.1] * 81])
    assert found is not None
    assert found.after_s == pytest.approx(5.0)


def test_a_speed_that_gets_better_once_more_is_reached_only_then() -> None:
    found = established([1.0, *[0.5] * 5, *[0.1] * 100])
    assert found is not None
    assert found.calls == 6
