"""The table of a persistent launch: what its kernel reads again, and what it stores in all iterations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fusewire_kernels.plan.loop_table import LoopTable, moving_bits, stored_bits
from fusewire_kernels.plan.plan import (
    ArenaColumn,
    InputColumn,
    OperandRef,
    OutputColumn,
    PersistentLaunch,
    UpdatedArray,
    ViewColumn,
)

COLUMNS = (ArenaColumn(), InputColumn(0), InputColumn(1), InputColumn(2), OutputColumn(0), OutputColumn(1))
LAUNCH = PersistentLaunch(
    kernel=1,
    sizes=(8,),
    operands=tuple(OperandRef(column, 0) for column in (1, 2, 3, 5, 4)),
    outputs=2,
    carried=(0,),
    fixed=(1,),
    blocks=1,
    threads=32,
    shared_bytes=0,
    clusters=2,
    most_in_turn=8,
)


def table(*, moving: set[int], stored_in_all: set[int], counts: Sequence[int] = (3,)) -> LoopTable:
    slots = np.zeros((3, len(counts), len(COLUMNS)), np.int64)
    return LoopTable(slots, counts, 3, 1, frozenset(stored_in_all), frozenset(moving))


def test_an_operand_is_read_again_if_its_column_moves_and_it_is_not_carried() -> None:
    assert moving_bits(LAUNCH, table(moving={1, 3, 4}, stored_in_all=set())) == 0b100


def test_a_result_is_stored_in_all_iterations_by_its_position_among_the_live_results() -> None:
    assert stored_bits(LAUNCH, COLUMNS, table(moving=set(), stored_in_all={1})) == 0b01
    assert stored_bits(LAUNCH, COLUMNS, table(moving=set(), stored_in_all={0, 1})) == 0b11


def test_a_part_of_an_array_is_stored_in_all_iterations_if_it_moves() -> None:
    columns = (*COLUMNS[:4], ViewColumn(5, 0, ()), ViewColumn(5, 64, ()))
    assert stored_bits(LAUNCH, columns, table(moving={4}, stored_in_all=set())) == 0b10


def test_an_array_that_iterations_change_must_be_one_in_all_of_them() -> None:
    launch = LAUNCH._replace(updated=(UpdatedArray(2, 4, 64),))
    found = table(moving=set(), stored_in_all=set())
    assert not found.why_not(launch, 60)
    found.slots[2, 0, 4] = 1
    why_not = found.why_not(launch, 60)
    assert "an array that the iterations change is kept of several" in why_not
    assert "the loop came before its plan" in why_not


@pytest.mark.parametrize("count", [2, 3])
def test_a_part_that_is_read_must_be_the_one_written_before(count: int) -> None:
    launch = LAUNCH._replace(follows=((0, 4),))  # operand 0 has column 1, and operand 4 column 4
    found = table(moving={1, 4}, stored_in_all=set(), counts=(3, count))
    found.slots[:, :, 1], found.slots[:, :, 4] = np.array([[7], [1], [2]]), np.array([[1], [2], [3]])
    found.slots[count:, 1, 1] = 0  # of a row that has ended
    assert not found.why_not(launch, 60)
    found.slots[count - 1, 1, 1] += 1
    assert "another part of an array" in found.why_not(launch, 60)


def test_operands_that_are_read_once_must_keep_still() -> None:
    assert not table(moving={3}, stored_in_all=set()).why_not(LAUNCH, 60)
    assert "an operand" in table(moving={2}, stored_in_all=set()).why_not(LAUNCH, 60)


@pytest.mark.parametrize(
    ("counts", "why_not"), [((2, 1), "2 iterations"), ((3,), ""), ((9,) * 60, ""), ((9,) * 61, "61 rows")]
)
def test_too_few_iterations_and_too_many_rows_are_launched_otherwise(counts: Sequence[int], why_not: str) -> None:
    found = table(moving=set(), stored_in_all=set(), counts=counts).why_not(LAUNCH, 60)
    assert found.startswith(why_not)
    assert bool(found) == bool(why_not)


@pytest.mark.parametrize(("clusters_at_once", "most_rows"), [(15, 60), (2, 8), (1, 4)])
def test_a_device_that_runs_fewer_clusters_at_once_launches_fewer_rows(clusters_at_once: int, most_rows: int) -> None:
    assert LAUNCH.most_rows(clusters_at_once) == most_rows


def test_a_launch_whose_clusters_may_all_follow_one_another_has_any_number_of_rows() -> None:
    assert LAUNCH._replace(most_in_turn=0).most_rows(1) is None
