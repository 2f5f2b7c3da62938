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


@pytest.mark.parametrize(("took_ns", "expected_ns"), [(400, 400), (3_000, 3_000), (60_000, MOST_NS)])
def test_unfinished_orders_go_on_for_as_long_as_others_had_within_a_bound(took_ns: int, expected_ns: int) -> None:
    assert after_a_slice().until_ns(took_ns) == took_ns + expected_ns


def test_unfinished_orders_go_on_at_once_and_are_owed_nothing_where_nobody_waits() -> None:
    shares = after_a_slice()
    shares.start_anew(SLICE_NS // 2)
    assert shares.is_due(SLICE_NS // 2)
    assert shares.until_ns(SLICE_NS // 2) == SLICE_NS // 2


def test_a_new_one_goes_on_at_once() -> None:
    shares = after_a_slice()
    shares.make_due()
    assert shares.is_due(1)


@pytest.mark.parametrize("order_ns", [100, 700, 1_000, 3_300, 4_900])
def test_each_side_has_about_half_whatever_the_orders_take(order_ns: int) -> None:
    shares, now_ns, others_ns, unfinished_ns = Shares(MOST_NS), 0, 0, 0
    shares.start_anew(0)
    for _ in range(1_000):
        if shares.is_due(now_ns):
            until_ns, is_over = shares.until_ns(now_ns), False
            while not is_over:
                now_ns, unfinished_ns = now_ns + SLICE_NS, unfinished_ns + SLICE_NS
                is_over = now_ns >= until_ns
            shares.stop(now_ns - SLICE_NS, now_ns, least_ns=LEAST_NS)
        now_ns, others_ns = now_ns + order_ns, others_ns + order_ns
    assert 0.4 < others_ns / now_ns < 0.6
