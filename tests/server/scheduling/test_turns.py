"""Whose turn it is."""

from __future__ import annotations

from fusewire_server.scheduling.turns import TenantTurns, Turns
from fusewire_server.sessions.session import Session
from tests.server.parts import session


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
    assert list(turns.remove_owner("a")) == [1]
    assert list(turns.remove_owner("a")) == []
    assert (turns.waiting("a"), turns.waiting("b")) == (0, 1)
    assert turns.take() == 2


def test_what_is_settled_when_it_is_reached_takes_no_turn() -> None:
    settled = {1, 2, 4}
    turns: Turns[int] = Turns(lambda item: item in settled)
    for owner, item in (("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5)):
        turns.add(owner, item)
    assert [turns.take() for _ in range(3)] == [3, 5, None]


def tenant_turns(*items: tuple[Session, int], settled: frozenset[int] = frozenset()) -> TenantTurns[int]:
    turns: TenantTurns[int] = TenantTurns(lambda item: item in settled)
    for owner, item in items:
        turns.add(owner, item)
    return turns


def test_tenants_take_turns_and_within_each_its_owners() -> None:
    a, b, other = session("a"), session("b"), session("c", tenant="other")
    turns = tenant_turns((a, 1), (a, 2), (b, 3), (b, 4), (other, 5), (other, 6))
    assert [turns.take() for _ in range(7)] == [1, 5, 3, 6, 2, 4, None]


def test_what_may_wait_comes_behind_all_else_of_its_tenant_and_before_nothing_of_others() -> None:
    a, b, other = session("a"), session("b"), session("c", tenant="other")
    turns = tenant_turns((a, 1), (other, 5))
    turns.add(a, 2, may_wait=True)
    turns.add(b, 3, may_wait=True)
    turns.add(b, 4)
    turns.add(other, 6, may_wait=True)
    assert (turns.waiting(a), turns.waiting(b)) == (2, 2)
    assert [turns.take() for _ in range(7)] == [1, 5, 4, 6, 2, 3, None]


def test_who_leaves_takes_along_what_may_wait_too() -> None:
    a, b = session("a"), session("b")
    turns = tenant_turns((a, 1), (b, 2))
    turns.add(a, 3, may_wait=True)
    assert turns.remove_owner(a) == [1, 3]
    assert (turns.waiting(a), [turns.take(), turns.take()]) == (0, [2, None])


def test_a_tenant_of_whose_items_all_are_settled_takes_no_turn() -> None:
    turns = tenant_turns((session("a"), 1), (session("b", tenant="other"), 2), settled=frozenset({1}))
    assert [turns.take(), turns.take()] == [2, None]


def test_an_owner_that_leaves_its_tenant_takes_its_items_along() -> None:
    a, b, other = session("a"), session("b"), session("c", tenant="other")
    turns = tenant_turns((a, 1), (b, 2), (other, 3))
    assert [list(turns.remove_owner(owner)) for owner in (a, a, other)] == [[1], [], [3]]
    assert [turns.waiting(owner) for owner in (a, b, other)] == [0, 1, 0]
    assert [turns.take(), turns.take()] == [2, None]
