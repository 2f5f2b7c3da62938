"""Which carried results are what was carried, of which some elements are changed."""

from __future__ import annotations

import pytest

from fusewire_kernels.build import build_plan, design
from fusewire_kernels.plan.plan import Donation, Plan
from fusewire_kernels.plan.plan_codec import decode_plan, encode_plan
from fusewire_protos.programs.program import Program
from tests.kernels.plan_runner import plan_without_text
from tests.kernels.programs import Writer

ROW = ((0,), (1,), (1,), ())


def planned(program: Program) -> Plan:
    return plan_without_text(design(program, for_gpu=False))


def assigned(writer: Writer, y: int, value: int) -> int:
    """The number of `y` after `y[start] = value`."""
    return writer.op("assign_slice", y, value, attributes=ROW)


def keeping() -> Program:
    """y[start] = tanh(h), with y carried."""
    writer = Writer()
    h, y = writer.input(1, 3), writer.input(4, 3)
    changed = assigned(writer, y, writer.tanh(h))
    return writer.program(changed, carried=[(y, changed)])


def diagonal_of(value_rows: int) -> Program:
    """The diagonal of y replaced by `value_rows` numbers, with y carried."""
    writer = Writer()
    h, y = writer.input(value_rows), writer.input(4, 4)
    changed = writer.assign_strided(y, writer.tanh(h), shape=(4,), strides=(5,))
    return writer.program(changed, carried=[(y, changed)])


def rows_of_gates() -> Program:
    """y[start] = sigmoid(a) * tanh(b), where a and b are slices of a product of a row of y."""
    writer = Writer()
    y, w = writer.input(8, 2, 16), writer.input(16, 32)
    gates = writer.matmul(writer.slice(y, (0,), (1,), dropped=(0,)), w)
    a, b = [writer.slice(gates, (1,), (16,)) for _ in range(2)]
    changed = writer.assign(y, writer.multiply(writer.sigmoid(a), writer.tanh(b)), axis=0)
    return writer.program(changed, carried=[(y, changed)])


def test_a_carried_array_of_which_a_row_is_assigned_is_updated() -> None:
    assert planned(keeping()).updates == (Donation(1, 0),)


@pytest.mark.parametrize("value_rows", [1, 4])
def test_so_is_one_whose_diagonal_is_assigned(value_rows: int) -> None:
    assert planned(diagonal_of(value_rows)).updates == (Donation(1, 0),)


def test_the_records_tell_of_it() -> None:
    assert planned(keeping()).records.updated == (1,)


def test_so_is_one_that_is_assigned_to_twice() -> None:
    writer = Writer()
    h, y = writer.input(1, 3), writer.input(4, 3)
    changed = assigned(writer, assigned(writer, y, h), writer.tanh(h))
    assert planned(writer.program(changed, carried=[(y, changed)])).updates == (Donation(1, 0),)


def test_it_may_be_read_by_kernels_before_the_one_that_changes_it() -> None:
    writer = Writer()
    y, w = writer.input(4, 3), writer.input(3, 3)
    changed = assigned(writer, y, writer.matmul(writer.sum(y, axes=(0,), keepdims=True), w))
    assert planned(writer.program(changed, carried=[(y, changed)])).updates == (Donation(0, 0),)


def computed_from_itself(rows: int) -> Program:
    """y[start] = tanh(y[start]), with y of so many rows carried."""
    writer = Writer()
    y = writer.input(rows, 3)
    changed = assigned(writer, y, writer.tanh(writer.slice(y, (0,), (1,))))
    return writer.program(changed, carried=[(y, changed)])


def test_one_of_which_a_row_is_computed_from_itself_is_updated_by_a_kernel_behind() -> None:
    made = design(computed_from_itself(4), for_gpu=False)
    assert made.updates == (Donation(0, 0),)
    assert len(made.launches) == 3  # what is computed, the copy, and the change


def test_one_of_which_most_is_computed_from_itself_is_copied() -> None:
    made = design(computed_from_itself(3), for_gpu=False)
    assert made.updates == ()
    assert len(made.launches) == 2


def test_one_that_is_not_carried_is_not_read_by_a_kernel_of_its_own() -> None:
    writer = Writer()
    y = writer.input(4, 3)
    changed = assigned(writer, y, writer.tanh(writer.slice(y, (0,), (1,))))
    assert len(design(writer.program(changed), for_gpu=False).launches) == 2


def test_slices_of_a_product_of_its_row_are_computed_before_it_changes() -> None:
    plan = build_plan(rows_of_gates(), "cuda")
    assert plan.updates == (Donation(0, 0),)


def test_one_that_is_read_later_is_not_updated() -> None:
    writer = Writer()
    h, y, w = writer.input(1, 3), writer.input(4, 3), writer.input(3, 3)
    changed = assigned(writer, y, h)
    read = writer.matmul(writer.add(writer.matmul(changed, w), y), w)
    assert planned(writer.program(read, changed, carried=[(y, changed)])).updates == ()


def test_one_that_is_computed_anew_before_it_is_changed_is_not_updated() -> None:
    writer = Writer()
    h, y = writer.input(1, 3), writer.input(4, 3)
    changed = assigned(writer, writer.tanh(y), h)
    assert planned(writer.program(changed, carried=[(y, changed)])).updates == ()


def test_one_that_is_turned_before_it_is_changed_is_not_updated() -> None:
    writer = Writer()
    h, y = writer.input(1, 3), writer.input(3, 3)
    changed = assigned(writer, writer.transpose(y, permutation=(1, 0)), h)
    assert planned(writer.program(changed, carried=[(y, changed)])).updates == ()


def test_one_that_is_not_carried_is_not_updated() -> None:
    writer = Writer()
    h, y = writer.input(1, 3), writer.input(4, 3)
    assert planned(writer.program(assigned(writer, y, h))).updates == ()


def test_one_that_another_input_takes_is_not_updated() -> None:
    writer = Writer()
    h, y, before = writer.input(1, 3), writer.input(4, 3), writer.input(4, 3)
    changed = assigned(writer, y, writer.tanh(h))
    program = writer.program(changed, writer.exp(before), carried=[(y, changed), (before, changed)])
    assert planned(program).updates == ()


def test_one_of_two_iterations_before_is_not_updated() -> None:
    writer = Writer()
    h, y, next_y = writer.input(1, 3), writer.input(4, 3), writer.input(4, 3)
    changed = assigned(writer, y, writer.tanh(h))
    program = writer.program(changed, writer.exp(next_y), carried=[(y, next_y), (next_y, changed)])
    assert planned(program).updates == ()


def test_updates_are_sent_with_the_plan() -> None:
    plan = planned(keeping())
    assert decode_plan(encode_plan(plan)).updates == plan.updates == (Donation(1, 0),)
