"""Rows of the slot table."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.ops.conversions import scalar
from fusewire_kernels.plan.plan import (
    ArenaColumn,
    Column,
    ConstantColumn,
    Cost,
    InputColumn,
    OutputColumn,
    Plan,
    ScalarColumn,
    Term,
    ViewColumn,
)
from fusewire_kernels.plan.slots import _MOST_KEPT, SlotLayout, Taken, bits_of
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from tests.kernels.plan.filled_slots import fill_iterations


def _plan(*columns: Column) -> Plan:
    return Plan((), (), (ArenaColumn(), *columns), 0, (), Cost(0, 0))


def _row(plan: Plan, scalars: tuple[int | float, ...] = (), starts: tuple[int, ...] = ()) -> list[int]:
    table = np.full((2, len(plan.columns)), 77, np.int64)
    SlotLayout(plan).fill(table, 1, 1000, [2000, 3000], [4000, 5000], scalars, starts)
    assert (table[0] == 77).all()
    return [int(slot) for slot in table[1]]


def test_addresses_are_those_of_the_arena_inputs_and_results() -> None:
    plan = _plan(InputColumn(1), OutputColumn(0), InputColumn(0), OutputColumn(1))
    assert _row(plan) == [1000, 3000, 4000, 2000, 5000]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((InputColumn(0), InputColumn(1), OutputColumn(0), OutputColumn(1)), [2000, 3000, 4000, 5000]),
        ((OutputColumn(0), OutputColumn(1), InputColumn(0), InputColumn(1)), [4000, 5000, 2000, 3000]),
    ],
    ids=["inputs first", "results first"],
)
def test_columns_in_any_order_have_their_own_addresses(columns: tuple[Column, ...], expected: list[int]) -> None:
    assert _row(_plan(*columns)) == [1000, *expected]


def test_views_lie_in_another_column_moved_by_starts() -> None:
    inside = ViewColumn(0, 64, (Term(1, 8),))
    of_input = ViewColumn(1, 0, (Term(0, 100), Term(2, -4)))
    assert _row(_plan(InputColumn(0), inside, of_input), (), (3, 5, 7)) == [1000, 2000, 1104, 2272]


def test_constants_stand_in_every_row() -> None:
    plan = _plan(ConstantColumn(3, dtypes.int64), ConstantColumn(1.0, dtypes.float32))
    assert _row(plan) == [1000, 3, 0x3F800000]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda dtype: dtype.name)
@given(value=st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.floats(-9, 9, width=16)))
def test_scalars_have_the_bits_of_their_dtype_in_the_low_bytes(dtype: DType, value: int | float) -> None:
    row = np.array(_row(_plan(ScalarColumn(0, dtype)), (value,))[1:], np.int64)
    wanted = scalar(np, value, dtype)
    assert row.tobytes()[: dtype.itemsize_bytes] == wanted.tobytes()


def test_a_value_too_large_for_float32_is_infinite_and_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _row(_plan(ScalarColumn(0, dtypes.float32)), (1e300,))[1] == bits_of(math.inf, dtypes.float32)


def test_a_kept_table_has_a_place_for_each_row_and_is_made_once_for_as_many() -> None:
    layout = SlotLayout(_plan(InputColumn(0)))
    table = layout.kept_table(3)
    assert table.shape == (1, 3, 2)
    assert layout.kept_table(3) is table
    assert layout.kept_table(4).shape == (1, 4, 2)


def test_the_places_of_loops_that_are_alike_are_found_once() -> None:
    layout = SlotLayout(_plan(InputColumn(0), OutputColumn(0)))
    calls = 0

    def taken() -> Taken:
        nonlocal calls
        calls += 1
        return Taken(np.zeros((2, 1), np.int64), np.ones((2, 1), np.int64))

    assert layout.loop_places("alike", taken) is layout.loop_places("alike", taken)
    assert calls == 1
    layout.loop_places(None, taken)
    assert calls == 2
    for other in range(_MOST_KEPT):
        layout.loop_places(other, taken)
    layout.loop_places("alike", taken)
    assert calls == 3 + _MOST_KEPT


@given(
    iterations=st.integers(1, 6),
    scalars=st.lists(st.floats(width=32), min_size=6, max_size=6),
    starts=st.lists(st.integers(0, 50), min_size=6, max_size=6),
    changes=st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
)
def test_the_rows_of_a_loop_are_those_of_its_iterations_one_by_one(
    iterations: int, scalars: list[float], starts: list[int], changes: tuple[bool, bool, bool, bool]
) -> None:
    plan = _plan(
        InputColumn(1),
        OutputColumn(0),
        ScalarColumn(0, dtypes.float32),
        ConstantColumn(3, dtypes.int32),
        ViewColumn(1, 64, (Term(0, 8), Term(1, -16))),
        InputColumn(0),
    )
    numbers = np.arange(iterations)
    inputs: list[Any] = [2000 + 10 * numbers, 3000 - numbers] if changes[0] else [2000, 3000]
    outputs: list[Any] = [4000 + 100 * numbers] if changes[1] else [4000]
    of_scalar = scalars[:iterations] if changes[2] else scalars[0]
    of_starts: list[Any] = [np.array(starts[:iterations]), 5] if changes[3] else [starts[0], 5]
    table = np.full((iterations, len(plan.columns)), 77, np.int64)
    fill_iterations(SlotLayout(plan), table, 1000, inputs, outputs, [of_scalar], of_starts)
    for number in range(iterations):
        one = np.zeros(len(plan.columns), np.int64)
        SlotLayout(plan).fill(
            one,
            0,
            1000,
            [int(np.broadcast_to(each, iterations)[number]) for each in inputs],
            [int(np.broadcast_to(each, iterations)[number]) for each in outputs],
            [scalars[number] if changes[2] else scalars[0]],
            [int(np.broadcast_to(each, iterations)[number]) for each in of_starts],
        )
        assert table[number].tolist() == one.tolist()
