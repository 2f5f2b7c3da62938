"""What may overtake unfinished orders: orders of other sessions, and nothing that depends on what is held up."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.scheduling.unfinished_orders import (
    MOST_OWED_NS,
    SLICE_NS,
    Progress,
    TimeShares,
    UnfinishedOrders,
    Waiting,
    giving_way,
)


class Order(NamedTuple):
    number: int
    parties: frozenset[str]
    goes_in_slices: bool


def order(number: int, parties: str, *, goes_in_slices: bool = False) -> Order:
    return Order(number, frozenset(parties), goes_in_slices)


def admit(unfinished: UnfinishedOrders[Order], one: Order) -> bool:
    return unfinished.admit(one, one.parties, goes_in_slices=one.goes_in_slices)


def behind(*parties: str) -> UnfinishedOrders[Order]:
    """An unfinished run of each of these parties."""
    unfinished: UnfinishedOrders[Order] = UnfinishedOrders()
    for number, each in enumerate(parties):
        assert admit(unfinished, order(-number, each, goes_in_slices=True))
    return unfinished


def test_all_are_admitted_while_nothing_is_unfinished() -> None:
    unfinished: UnfinishedOrders[Order] = UnfinishedOrders()
    assert unfinished.is_empty
    assert admit(unfinished, order(1, "a", goes_in_slices=True))
    assert not unfinished.is_empty


def test_others_overtake() -> None:
    assert admit(behind("a"), order(1, "bc"))


def test_what_concerns_nobody_overtakes() -> None:
    assert admit(behind("a"), order(1, ""))


@pytest.mark.parametrize("parties", ["a", "ab"])
@pytest.mark.parametrize("goes_in_slices", [False, True])
def test_what_concerns_a_party_of_the_run_is_held_up(parties: str, goes_in_slices: bool) -> None:
    unfinished = behind("a")
    following = order(1, parties, goes_in_slices=goes_in_slices)
    assert not admit(unfinished, following)
    assert unfinished.end("a") == [following]


def test_another_run_in_slices_of_others_is_admitted_and_bars_them() -> None:
    unfinished = behind("a")
    assert admit(unfinished, order(1, "b", goes_in_slices=True))
    assert not admit(unfinished, order(2, "b"))


def test_what_concerns_two_unfinished_runs_waits_for_both() -> None:
    unfinished = behind("a", "b", "c")
    assert not admit(unfinished, order(1, "ab"))
    assert unfinished.end("c") == []
    assert unfinished.end("a") == []
    assert unfinished.end("b") == [order(1, "ab")]


def test_what_concerns_a_party_of_a_held_up_order_is_held_up() -> None:
    unfinished = behind("a")
    assert [admit(unfinished, order(number, parties)) for number, parties in enumerate(["ab", "bc", "c", "d"])] == [
        False,
        False,
        False,
        True,
    ]


def test_what_was_held_up_bars_its_parties_until_it_has_ended() -> None:
    unfinished = behind("a")
    admit(unfinished, order(1, "ab", goes_in_slices=True))
    admit(unfinished, order(2, "b"))
    assert unfinished.end("a") == [order(1, "ab", goes_in_slices=True)]
    assert unfinished.end("ab") == [order(2, "b")]


def test_nothing_is_held_up_any_more_once_all_have_ended() -> None:
    unfinished = behind("a")
    admit(unfinished, order(1, "ab"))
    unfinished.end("a")
    unfinished.end("ab")
    assert unfinished.is_empty
    assert admit(unfinished, order(2, "a"))


class Schedule:
    """Acts on orders as the device thread does, and notes when each begins and ends."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []
        self.unfinished: list[Order] = []
        self._unfinished: UnfinishedOrders[Order] = UnfinishedOrders()

    def consider(self, one: Order) -> None:
        if admit(self._unfinished, one):
            self._act(one)

    def finish(self, turn: int) -> None:
        """One of those that are unfinished ends, and what waited for it goes on."""
        if not self.unfinished:
            return
        one = self.unfinished.pop(turn % len(self.unfinished))
        self.events.append(("ended", one.number))
        ended = [one]
        while ended:
            for following in self._unfinished.end(ended.pop().parties):
                self._act(following)
                if not following.goes_in_slices:
                    ended.append(following)

    def _act(self, one: Order) -> None:
        self.events.append(("began", one.number))
        if one.goes_in_slices:
            self.unfinished.append(one)
        else:
            self.events.append(("ended", one.number))


ORDERS = st.lists(
    st.tuples(st.frozensets(st.sampled_from("abcd"), max_size=3), st.booleans(), st.none() | st.integers(0, 3))
)


@given(ORDERS)
def test_of_two_orders_that_share_a_party_the_first_ends_before_the_second_begins(
    drawn: list[tuple[frozenset[str], bool, int | None]],
) -> None:
    schedule = Schedule()
    orders = [Order(number, parties, in_slices) for number, (parties, in_slices, _) in enumerate(drawn)]
    for one, (_, _, turn) in zip(orders, drawn, strict=True):
        if turn is not None:
            schedule.finish(turn)
        schedule.consider(one)
    while schedule.unfinished:
        schedule.finish(0)
    place = {event: index for index, event in enumerate(schedule.events)}
    assert len(schedule.events) == len(place) == 2 * len(orders)
    for first, second in combinations(orders, 2):
        if first.parties & second.parties:
            assert place["ended", first.number] < place["began", second.number]


def test_all_that_waits_is_told_once() -> None:
    unfinished = behind("a", "b")
    admit(unfinished, order(1, "ab"))
    assert sorted(one.number for one in unfinished.orders()) == [-1, 0, 1]


@pytest.mark.parametrize(
    ("lacking_bytes", "above_bytes", "expected"),
    [
        (0, 0, []),
        (1, 0, ["great"]),
        (101, 0, ["great", "middle"]),
        (161, 0, []),
        (101, 10, ["great", "middle"]),
        (101, 50, []),
        (100, 50, ["great"]),
        (1, 100, []),
    ],
)
def test_the_greatest_runs_give_way_if_they_suffice_and_are_greater_than_who_asks(
    lacking_bytes: int, above_bytes: int, expected: list[str]
) -> None:
    reserved_bytes = {"small": 10, "great": 100, "middle": 50}
    assert giving_way(reserved_bytes, lacking_bytes, above_bytes=above_bytes) == expected


# ---- time ----


def end_slice(shares: TimeShares, took_ns: int, now_ns: int = 0, progress: Progress = Progress.GOES_ON) -> bool:
    return shares.goes_on(now_ns - took_ns, now_ns, progress)


def after_a_slice(took_ns: int = SLICE_NS) -> TimeShares:
    """At 0, when that slice has ended."""
    shares = TimeShares()
    end_slice(shares, took_ns)
    return shares


@pytest.mark.parametrize(
    ("took_ns", "expected_ns"), [(10, SLICE_NS), (2 * SLICE_NS, 2 * SLICE_NS), (9 * MOST_OWED_NS, MOST_OWED_NS)]
)
def test_others_have_as_long_as_the_slice_before_them_took_within_bounds(took_ns: int, expected_ns: int) -> None:
    shares = after_a_slice(took_ns)
    assert [shares.is_turn(now_ns, Waiting.ORDER) for now_ns in (expected_ns - 1, expected_ns)] == [False, True]


def test_what_is_brief_goes_before_a_slice_that_is_due_until_it_has_waited_for_one() -> None:
    shares = after_a_slice()
    assert [shares.is_turn(now_ns, Waiting.BRIEF) for now_ns in (2 * SLICE_NS - 1, 2 * SLICE_NS)] == [False, True]


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
    shares.overtaken(SLICE_NS)
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
