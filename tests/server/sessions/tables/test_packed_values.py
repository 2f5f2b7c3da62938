"""Packed values are a table by handle, whatever handles the client chooses."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.devices.base import Block
from fusewire_protos.frames import MAX_HANDLE
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.sessions.tables.packed_values import PackedValue, PackedValues

SPEC = Spec(dtypes.float32, (4,))
MANY = 5000


def value(handle: int) -> PackedValue:
    return PackedValue(handle, SPEC, handle % 7, handle % 5, Block(handle * 64 % 2**48, 64, "owner"))


def fields(packed: PackedValue | None) -> Any:
    return packed and (*packed[:4], packed.block.address, packed.block.size_bytes, packed.block.owner)


def filled(handles: list[int]) -> PackedValues:
    table = PackedValues()
    for handle in handles:
        table.add(value(handle))
    return table


@given(st.lists(st.integers(0, MAX_HANDLE), unique=True, max_size=50), st.sets(st.integers(0, 49)))
def test_what_is_added_is_found_until_it_is_taken_out(handles: list[int], taken: set[int]) -> None:
    table = filled(handles)
    gone = {handle for position, handle in enumerate(handles) if position in taken}
    for handle in gone:
        assert fields(table.pop(handle)) == fields(value(handle))
        assert table.pop(handle) is None
    left = sorted(set(handles) - gone)
    assert ([*table], len(table)) == (left, len(left))
    assert [fields(table.get(handle)) for handle in left] == [fields(value(handle)) for handle in left]
    assert not any(handle in table for handle in gone)


@given(st.permutations(range(8)))
def test_many_values_are_found_in_whatever_order_they_came(order: list[int]) -> None:
    handles = [first * MANY + 3 * each for first in order for each in range(MANY // 8)]
    table = filled(handles)
    assert [*table] == sorted(handles)
    assert all(fields(table.get(handle)) == fields(value(handle)) for handle in handles[:: MANY // 64])
    assert table.get(1) is None


def test_all_values_can_be_taken_out_in_pieces() -> None:
    table, taken = filled([*range(MANY)]), []
    while piece := table.pop_some():
        taken += [fields(each) for each in piece]
        assert (len(piece) < 1000, len(table)) == (True, MANY - len(taken))
    assert sorted(taken) == [fields(value(handle)) for handle in range(MANY)]


def test_values_that_come_backwards_or_between_others_are_found() -> None:
    handles = [*range(MANY, 0, -2), *range(MANY - 1, 0, -2)]
    assert [*filled(handles)] == sorted(handles)
