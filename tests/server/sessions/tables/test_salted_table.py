"""A salted table is a dict whose numbers lie where the client cannot choose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.sessions.tables import salted_table
from fusewire_server.sessions.tables.salted_table import SaltedTable

numbers = st.integers(-(2**63), 2**63 - 1)


@given(st.dictionaries(numbers, st.text(max_size=3)), numbers)
def test_a_table_holds_what_a_dict_holds_in_the_same_order(items: dict[int, str], other: int) -> None:
    table: SaltedTable[str] = SaltedTable()
    table.update(items)
    assert [*table.items()] == [*items.items()]
    assert [*table.values()] == [*items.values()]
    assert (len(table), other in table, table.get(other), table.get(other, 1)) == (
        len(items),
        other in items,
        items.get(other),
        items.get(other, 1),
    )


def test_items_can_be_taken_out() -> None:
    table: SaltedTable[str] = SaltedTable()
    table.update({1: "one", 2: "two", 3: "three"})
    del table[2]
    assert (table.pop(1), table.pop(1, None), table[3]) == ("one", None, "three")
    with pytest.raises(KeyError):
        table.pop(2)
    table.clear()
    assert not table


def test_the_keys_of_the_dict_beneath_are_not_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(salted_table, "_SECRET", 0b101)
    table: SaltedTable[str] = SaltedTable()
    table[0b100] = "item"
    assert [*table._items] == [0b001]
    assert [*table] == [0b100]


def test_the_secret_is_no_number_that_a_client_could_guess() -> None:
    assert salted_table._SECRET >= 2**32  # in all but one of 2^30 processes
