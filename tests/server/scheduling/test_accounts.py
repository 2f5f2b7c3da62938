"""Accounts in order of the device time that they hold, which takes no more room the longer it goes on."""

from __future__ import annotations

from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.scheduling.accounts import Accounts, TenantAccounts
from fusewire_server.sessions.session import Session
from tests.server.parts import session


@given(st.lists(st.tuples(st.sampled_from(["note_work", "note_idle", "charge", "drop", "serve"]), st.integers(0, 4))))
def test_keys_that_have_work_are_in_order_of_their_time(changes: list[tuple[str, int]]) -> None:
    accounts, waiting = Accounts(), set[int]()
    for number, (change, key) in enumerate(changes):
        if change == "note_work":
            accounts.note_work(key)
            waiting.add(key)
        elif change == "charge":
            accounts.charge(key, 7 * number % 11 - 3)
        elif change == "serve" and key in waiting:
            accounts.serve(key)
        elif change in ("note_idle", "drop"):
            getattr(accounts, change)(key)
            waiting.discard(key)
        order = list(accounts.in_order())
        assert set(order) == waiting
        assert len(order) == len(waiting)
        assert [accounts.used_ns[key] for key in order] == sorted(accounts.used_ns[key] for key in waiting)


def test_an_order_that_is_read_in_part_is_whole_the_next_time() -> None:
    accounts = Accounts()
    for key in range(5):
        accounts.note_work(key)
        accounts.charge(key, 10 - key)
    order = accounts.in_order()
    assert [next(order), next(order)] == [4, 3]
    order.close()
    assert list(accounts.in_order()) == [4, 3, 2, 1, 0]


def test_items_that_are_out_of_date_take_no_room_behind_one_that_is_not() -> None:
    accounts = Accounts()
    accounts.note_work("first")
    accounts.note_work("ahead")
    for _ in range(1000):
        accounts.charge("ahead", 1)
        order = accounts.in_order()
        assert next(order) == "first"
        order.close()
    assert len(accounts._heap) <= 2 * 2 + 64 + 1


def test_a_key_that_is_charged_nothing_takes_no_more_room() -> None:
    accounts = Accounts()
    accounts.note_work("first")
    accounts.note_work("ahead")
    accounts.charge("ahead", 1)
    for _ in range(1000):
        accounts.note_work("ahead")
        order = accounts.in_order()
        assert next(order) == "first"
        order.close()
    assert len(accounts._heap) <= 2 * 2 + 64 + 1


def test_accounts_of_a_key_that_has_changed_often_take_no_more_room() -> None:
    accounts = Accounts()
    accounts.note_work("often")
    accounts.note_work("never")
    for _ in range(1000):
        accounts.charge("often", 1)
        list(accounts.in_order())
    assert len(accounts._heap) <= 3


# ---- tenants and their owners ----


def with_work(*owners: Session) -> TenantAccounts[Session]:
    accounts: TenantAccounts[Session] = TenantAccounts()
    for owner in owners:
        accounts.note_work(owner)
    return accounts


def test_a_tenant_with_many_owners_comes_no_sooner_than_one_with_one() -> None:
    many, alone = [session(name, tenant="many") for name in "abc"], session("d", tenant="alone")
    accounts = with_work(*many, alone)
    served: list[str] = []
    for _ in range(12):
        with closing(accounts.in_order()) as owners:
            first = next(owners)
        accounts.serve(first)
        accounts.charge(first, 10)
        served.append(first.tenant)
    assert served.count("alone") == 6


def test_owners_of_a_tenant_take_turns_by_the_time_that_they_have_used() -> None:
    one, other = session("a"), session("b")
    accounts = with_work(one, other)
    accounts.charge(one, 5)
    assert [*accounts.in_order()] == [other, one]
    assert (accounts.lead_ns(one, other), accounts.lead_ns(other, one)) == (5, -5)


def test_a_tenant_has_work_until_its_last_owner_has_none() -> None:
    one, other = session("a"), session("b")
    accounts = with_work(one, other)
    accounts.note_idle(one)
    assert [*accounts.in_order()] == [other]
    accounts.note_idle(other)
    assert [*accounts.in_order()] == []


def test_an_owner_without_an_account_is_charged_nothing() -> None:
    accounts, gone = with_work(session("a")), session("gone")
    accounts.open(gone)
    accounts.drop(gone)
    accounts.serve(gone)
    accounts.charge(gone, 5)
    accounts.note_work(gone)
    assert accounts.rank(gone)[1] == 0
