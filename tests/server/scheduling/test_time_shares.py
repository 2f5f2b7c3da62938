"""When unfinished orders go on and when others do: each side has about half of the time."""

from __future__ import annotations

import pytest

from fusewire_server.scheduling.time_shares import MOST_OWED_NS, ORDER_SLICE_NS, Progress, TimeShares, Waiting


def end_slice(shares: TimeShares, took_ns: int, now_ns: int = 0, progress: Progress = Progress.GOES_ON) -> bool:
    return shares.goes_on(now_ns - took_ns, now_ns, progress)


def after_a_slice(took_ns: int = ORDER_SLICE_NS) -> TimeShares:
    """At 0, when that slice has ended."""
    shares = TimeShares()
    end_slice(shares, took_ns)
    return shares


@pytest.mark.parametrize(
    ("took_ns", "expected_ns"),
    [(10, ORDER_SLICE_NS), (2 * ORDER_SLICE_NS, 2 * ORDER_SLICE_NS), (9 * MOST_OWED_NS, MOST_OWED_NS)],
)
def test_others_have_as_long_as_the_slice_before_them_took_within_bounds(took_ns: int, expected_ns: int) -> None:
    shares = after_a_slice(took_ns)
    assert [shares.is_turn(now_ns, Waiting.ORDER) for now_ns in (expected_ns - 1, expected_ns)] == [False, True]


def test_what_is_brief_goes_before_a_slice_that_is_due_until_it_has_waited_for_one() -> None:
    shares = after_a_slice()
    assert [shares.is_turn(now_ns, Waiting.BRIEF) for now_ns in (2 * ORDER_SLICE_NS - 1, 2 * ORDER_SLICE_NS)] == [
        False,
        True,
    ]


@pytest.mark.parametrize(("used_ns", "expected_ns"), [(400, 400), (3_000, 3_000), (9 * MOST_OWED_NS, MOST_OWED_NS)])
def test_unfinished_orders_go_on_for_as_long_as_others_used_within_a_bound(used_ns: int, expected_ns: int) -> None:
    shares = after_a_slice()
    shares.overtaken(used_ns // 2)
    shares.overtaken(used_ns - used_ns // 2)
    shares.begin_turn(100_000)
    assert [end_slice(shares, 1, 100_000 + passed_ns) for passed_ns in (expected_ns - 1, expected_ns)] == [True, False]


def test_what_was_owed_before_the_last_slice_is_not_owed_again() -> None:
    shares = after_a_slice()
    shares.overtaken(400)
    end_slice(shares, 1_000, 2_000)
    shares.begin_turn(3_000)
    assert not end_slice(shares, 1, 3_000)


def test_unfinished_orders_go_on_at_once_and_are_owed_nothing_where_nothing_waits() -> None:
    shares = after_a_slice()
    shares.overtaken(ORDER_SLICE_NS)
    assert shares.is_turn(1, Waiting.NOTHING)
    shares.begin_turn(1)
    assert not end_slice(shares, 1, 1)


@pytest.mark.parametrize("is_first", [False, True])
def test_a_new_one_goes_on_at_once(is_first: bool) -> None:
    shares = after_a_slice()
    shares.begin(is_first=is_first)
    assert shares.is_turn(1, Waiting.ORDER)


def test_one_that_waits_lets_others_go_and_is_looked_at_again_at_once() -> None:
    shares = after_a_slice()
    shares.overtaken(MOST_OWED_NS)
    shares.begin_turn(0)
    assert not end_slice(shares, 1, 1, Progress.WAITS)
    assert shares.is_turn(1, Waiting.ORDER)


@pytest.mark.parametrize("order_ns", [100_000, 700_000, 1_000_000, 3_300_000, 4_900_000])
def test_each_side_has_about_half_whatever_the_orders_take(order_ns: int) -> None:
    shares, now_ns, others_ns = TimeShares(), 0, 0
    shares.begin(is_first=True)
    for _ in range(1_000):
        if shares.is_turn(now_ns, Waiting.ORDER):
            shares.begin_turn(now_ns)
            goes_on = True
            while goes_on:
                now_ns += 1_000_000
                goes_on = end_slice(shares, 1_000_000, now_ns)
        now_ns, others_ns = now_ns + order_ns, others_ns + order_ns
        shares.overtaken(order_ns)
    assert 0.4 < others_ns / now_ns < 0.6
