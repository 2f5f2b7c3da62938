"""Shares of the device: unfinished orders, and those that overtake them, have about the same time."""

from __future__ import annotations

import pytest

from fusewire_server.shares import Shares

MOST_NS, LEAST_NS, SLICE_NS = 5_000, 300, 1_000


def after_a_slice(took_ns: int = SLICE_NS) -> Shares:
    """At 0, when that slice has ended."""
    shares = Shares(MOST_NS)
    shares.stop(-took_ns, 0, least_ns=LEAST_NS)
    return shares


@pytest.mark.parametrize(("took_ns", "expected_ns"), [(10, LEAST_NS), (SLICE_NS, SLICE_NS), (60_000, MOST_NS)])
def test_others_have_as_long_as_the_slice_before_them_took_within_bounds(took_ns: int, expected_ns: int) -> None:
    shares = after_a_slice(took_ns)
    assert [shares.is_due(now_ns) for now_ns in (expected_ns - 1, expected_ns)] == [False, True]


@pytest.mark.parametrize(("used_ns", "expected_ns"), [(400, 400), (3_000, 3_000), (60_000, MOST_NS)])
def test_unfinished_orders_go_on_for_as_long_as_others_used_within_a_bound(used_ns: int, expected_ns: int) -> None:
    shares = after_a_slice()
    shares.use(used_ns // 2)
    shares.use(used_ns - used_ns // 2)
    assert shares.until_ns(100_000) == 100_000 + expected_ns


def test_time_that_nobody_used_is_not_owed() -> None:
    assert after_a_slice().until_ns(100_000) == 100_000


def test_what_was_owed_before_the_last_slice_is_not_owed_again() -> None:
    shares = after_a_slice()
    shares.use(400)
    shares.stop(1_000, 2_000, least_ns=LEAST_NS)
    assert shares.until_ns(3_000) == 3_000


def test_unfinished_orders_go_on_at_once_and_are_owed_nothing_where_nobody_waits() -> None:
    shares = after_a_slice()
    shares.use(SLICE_NS)
    shares.start_anew()
    assert shares.is_due(SLICE_NS // 2)
    assert shares.until_ns(SLICE_NS // 2) == SLICE_NS // 2


def test_a_new_one_goes_on_at_once() -> None:
    shares = after_a_slice()
    shares.make_due()
    assert shares.is_due(1)


@pytest.mark.parametrize("order_ns", [100, 700, 1_000, 3_300, 4_900])
def test_each_side_has_about_half_whatever_the_orders_take(order_ns: int) -> None:
    shares, now_ns, others_ns, unfinished_ns = Shares(MOST_NS), 0, 0, 0
    shares.start_anew()
    for _ in range(1_000):
        if shares.is_due(now_ns):
            until_ns, is_over = shares.until_ns(now_ns), False
            while not is_over:
                now_ns, unfinished_ns = now_ns + SLICE_NS, unfinished_ns + SLICE_NS
                is_over = now_ns >= until_ns
            shares.stop(now_ns - SLICE_NS, now_ns, least_ns=LEAST_NS)
        now_ns, others_ns = now_ns + order_ns, others_ns + order_ns
        shares.use(order_ns)
    assert 0.4 < others_ns / now_ns < 0.6
