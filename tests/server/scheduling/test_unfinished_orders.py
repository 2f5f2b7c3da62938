"""What may overtake unfinished orders: orders of other sessions, and nothing that depends on what is held up."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.scheduling.unfinished_orders import UnfinishedOrders


class Order(NamedTuple):
    number: int
    parties: frozenset[str]
    goes_in_slices: bool


def order(number: int, parties: str, *, goes_in_slices: bool = False) -> Order:
    return Order(number, frozenset(parties), goes_in_slices)


def try_begin(unfinished: UnfinishedOrders[Order], one: Order) -> bool:
    return unfinished.try_begin(one, one.parties, goes_in_slices=one.goes_in_slices)


def behind(*parties: str) -> UnfinishedOrders[Order]:
    """An unfinished run of each of these parties."""
    unfinished: UnfinishedOrders[Order] = UnfinishedOrders()
    for number, each in enumerate(parties):
        assert try_begin(unfinished, order(-number, each, goes_in_slices=True))
    return unfinished


def test_all_are_admitted_while_nothing_is_unfinished() -> None:
    unfinished: UnfinishedOrders[Order] = UnfinishedOrders()
    assert unfinished.is_empty
    assert try_begin(unfinished, order(1, "a", goes_in_slices=True))
    assert not unfinished.is_empty


def test_others_overtake() -> None:
    assert try_begin(behind("a"), order(1, "bc"))


def test_what_concerns_nobody_overtakes() -> None:
    assert try_begin(behind("a"), order(1, ""))


@pytest.mark.parametrize("parties", ["a", "ab"])
@pytest.mark.parametrize("goes_in_slices", [False, True])
def test_what_concerns_a_party_of_the_run_is_held_up(parties: str, goes_in_slices: bool) -> None:
    unfinished = behind("a")
    following = order(1, parties, goes_in_slices=goes_in_slices)
    assert not try_begin(unfinished, following)
    assert unfinished.end("a") == [following]


def test_another_run_in_slices_of_others_is_admitted_and_bars_them() -> None:
    unfinished = behind("a")
    assert try_begin(unfinished, order(1, "b", goes_in_slices=True))
    assert not try_begin(unfinished, order(2, "b"))


def test_what_concerns_two_unfinished_runs_waits_for_both() -> None:
    unfinished = behind("a", "b", "c")
    assert not try_begin(unfinished, order(1, "ab"))
    assert unfinished.end("c") == []
    assert unfinished.end("a") == []
    assert unfinished.end("b") == [order(1, "ab")]


def test_what_concerns_a_party_of_a_held_up_order_is_held_up() -> None:
    unfinished = behind("a")
    assert [try_begin(unfinished, order(number, parties)) for number, parties in enumerate(["ab", "bc", "c", "d"])] == [
        False,
        False,
        False,
        True,
    ]


def test_what_was_held_up_bars_its_parties_until_it_has_ended() -> None:
    unfinished = behind("a")
    try_begin(unfinished, order(1, "ab", goes_in_slices=True))
    try_begin(unfinished, order(2, "b"))
    assert unfinished.end("a") == [order(1, "ab", goes_in_slices=True)]
    assert unfinished.end("ab") == [order(2, "b")]


def test_nothing_is_held_up_any_more_once_all_have_ended() -> None:
    unfinished = behind("a")
    try_begin(unfinished, order(1, "ab"))
    unfinished.end("a")
    unfinished.end("ab")
    assert unfinished.is_empty
    assert try_begin(unfinished, order(2, "a"))


class Schedule:
    """Acts on orders as the device thread does, and notes when each begins and ends."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []
        self.unfinished: list[Order] = []
        self._unfinished: UnfinishedOrders[Order] = UnfinishedOrders()

    def consider(self, one: Order) -> None:
        if try_begin(self._unfinished, one):
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
    try_begin(unfinished, order(1, "ab"))
    assert sorted(one.number for one in unfinished.orders()) == [-1, 0, 1]
