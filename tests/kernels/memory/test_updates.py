"""Which results are an input of which some elements are changed."""

from __future__ import annotations

from fusewire_kernels.build import design
from fusewire_kernels.plan.plan import Donation, Plan
from fusewire_kernels.plan.plan_codec import decode_plan, encode_plan
from fusewire_protos.programs.program import Program
from tests.kernels.plan_runner import plan_without_text
from tests.kernels.programs import Writer

ROW = ((0,), (1,), (1,), ())


def planned(program: Program) -> Plan:
    return plan_without_text(design(program))


def assigned(writer: Writer, y: int, value: int) -> int:
    """The number of `y` after `y[start] = value`."""
    return writer.op("assign_slice", y, value, attributes=ROW)


def test_an_array_of_which_a_row_is_assigned_is_an_update() -> None:
    writer = Writer()
    h, y = writer.input(1, 3), writer.input(4, 3)
    assert planned(writer.program(assigned(writer, y, writer.tanh(h)))).updates == (Donation(1, 0),)


def test_so_is_one_that_is_assigned_to_twice() -> None:
    writer = Writer()
    h, y = writer.input(1, 3), writer.input(4, 3)
    program = writer.program(assigned(writer, assigned(writer, y, h), writer.tanh(h)))
    assert planned(program).updates == (Donation(1, 0),)


def test_the_input_may_be_read_by_kernels_before_the_one_that_changes_it() -> None:
    writer = Writer()
    y, w = writer.input(4, 3), writer.input(3, 3)
    row = writer.matmul(writer.sum(y, axes=(0,), keepdims=True), w)
    assert planned(writer.program(assigned(writer, y, row))).updates == (Donation(0, 0),)


def test_an_input_that_is_read_by_the_kernel_that_changes_it_is_not_updated() -> None:
    writer = Writer()
    y = writer.input(4, 3)
    row = writer.tanh(writer.slice(y, (0,), (1,)))
    assert planned(writer.program(assigned(writer, y, row))).updates == ()


def test_an_input_that_is_read_later_is_not_updated() -> None:
    writer = Writer()
    h, y, w = writer.input(1, 3), writer.input(4, 3), writer.input(3, 3)
    changed = assigned(writer, y, h)
    read = writer.matmul(writer.add(writer.matmul(changed, w), y), w)
    assert planned(writer.program(read, changed)).updates == ()


def test_what_is_computed_before_it_is_changed_is_no_update() -> None:
    writer = Writer()
    h, y = writer.input(1, 3), writer.input(4, 3)
    assert planned(writer.program(assigned(writer, writer.tanh(y), h))).updates == ()


def test_a_turned_copy_is_no_update() -> None:
    writer = Writer()
    h, y = writer.input(1, 3), writer.input(3, 3)
    assert planned(writer.program(assigned(writer, writer.transpose(y, permutation=(1, 0)), h))).updates == ()


def test_updates_are_sent_with_the_plan() -> None:
    writer = Writer()
    h, y = writer.input(1, 3), writer.input(4, 3)
    plan = planned(writer.program(assigned(writer, y, h)))
    assert decode_plan(encode_plan(plan)).updates == plan.updates == (Donation(1, 0),)
