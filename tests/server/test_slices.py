"""What may overtake an unfinished run: orders of other sessions, and nothing that depends on what is held up."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.slices import Line


class Order(NamedTuple):
    number: int
    parties: frozenset[str]
    goes_in_slices: bool


def order(number: int, parties: str, *, goes_in_slices: bool = False) -> Order:
    return Order(number, frozenset(parties), goes_in_slices)


def admit(line: Line[Order], one: Order) -> bool:
    return line.admit(one, one.parties, goes_in_slices=one.goes_in_slices)


def behind(parties: str) -> Line[Order]:
    """A line behind an unfinished run of these parties."""
    line: Line[Order] = Line()
    line.begin(parties)
    return line


def test_all_are_admitted_while_nothing_is_unfinished() -> None:
    assert admit(Line(), order(1, "a", goes_in_slices=True))


def test_others_overtake() -> None:
    assert admit(behind("a"), order(1, "bc"))


def test_what_concerns_nobody_overtakes() -> None:
    assert admit(behind("a"), order(1, ""))


@pytest.mark.parametrize("parties", ["a", "ab"])
def test_what_concerns_a_party_of_the_run_is_held_up(parties: str) -> None:
    line = behind("a")
    assert not admit(line, order(1, parties))
    assert line.end() == [order(1, parties)]


def test_another_run_in_slices_is_held_up_whoever_it_is_of() -> None:
    assert not admit(behind("a"), order(1, "b", goes_in_slices=True))


def test_what_concerns_a_party_of_a_held_up_order_is_held_up() -> None:
    line = behind("a")
    assert [admit(line, order(number, parties)) for number, parties in enumerate(["ab", "bc", "c", "d"])] == [
        False,
        False,
        False,
        True,
    ]


def test_nothing_is_held_up_any_more_once_the_run_has_ended() -> None:
    line = behind("a")
    admit(line, order(1, "ab"))
    line.end()
    assert admit(line, order(2, "a"))
    assert line.end() == []


class Schedule:
    """Acts on orders as the device thread does, and notes when each begins and ends."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []
        self.unfinished: Order | None = None
        self._line: Line[Order] = Line()

    def consider(self, one: Order) -> None:
        if not admit(self._line, one):
            return
        self.events.append(("began", one.number))
        if one.goes_in_slices:
            self._line.begin(one.parties)
            self.unfinished = one
        else:
            self.events.append(("ended", one.number))

    def finish(self) -> None:
        if self.unfinished is None:
            return
        self.events.append(("ended", self.unfinished.number))
        self.unfinished = None
        for one in self._line.end():
            self.consider(one)


ORDERS = st.lists(st.tuples(st.frozensets(st.sampled_from("abcd"), max_size=3), st.booleans(), st.booleans()))


@given(ORDERS)
def test_of_two_orders_that_share_a_party_the_first_ends_before_the_second_begins(
    drawn: list[tuple[frozenset[str], bool, bool]],
) -> None:
    schedule = Schedule()
    orders = [Order(number, parties, in_slices) for number, (parties, in_slices, _) in enumerate(drawn)]
    for one, (_, _, is_finished_first) in zip(orders, drawn, strict=True):
        if is_finished_first:
            schedule.finish()
        schedule.consider(one)
    while schedule.unfinished is not None:
        schedule.finish()
    place = {event: index for index, event in enumerate(schedule.events)}
    assert len(schedule.events) == len(place) == 2 * len(orders)
    for first, second in combinations(orders, 2):
        if first.parties & second.parties:
            assert place["ended", first.number] < place["began", second.number]
