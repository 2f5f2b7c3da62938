"""Whose turn it is."""

from __future__ import annotations

from fusewire_server.turns import Turns


def test_owners_take_turns_and_each_is_served_in_order() -> None:
    turns: Turns[int] = Turns()
    for owner, item in (("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5)):
        turns.add(owner, item)
    assert [turns.take() for _ in range(6)] == [1, 4, 2, 5, 3, None]


def test_who_comes_back_stands_behind_the_others() -> None:
    turns: Turns[int] = Turns()
    turns.add("a", 1)
    turns.add("b", 2)
    assert turns.take() == 1
    turns.add("a", 3)
    assert [turns.take(), turns.take()] == [2, 3]


def test_who_leaves_takes_its_items_along() -> None:
    turns: Turns[int] = Turns()
    turns.add("a", 1)
    turns.add("b", 2)
    assert list(turns.leave("a")) == [1]
    assert list(turns.leave("a")) == []
    assert (turns.waiting("a"), turns.waiting("b")) == (0, 1)
    assert turns.take() == 2
