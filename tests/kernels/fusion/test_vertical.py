"""Which values share a group, and why others do not."""

from __future__ import annotations

import numpy as np
import pytest

from fusewire_kernels.build import design
from fusewire_kernels.fusion.fusion import Fusion
from fusewire_kernels.fusion.placement import Walk
from fusewire_kernels.fusion.reasons import MOST_BESIDE_PRODUCT
from fusewire_kernels.graph.graph import Form
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Shape
from fusewire_protos.programs.program import Program
from tests.kernels.op_by_op import run_op_by_op
from tests.kernels.plan_runner import run_program
from tests.kernels.programs import Writer, random_inputs
from tests.kernels.separate import design_separately


def _groups(program: Program) -> list[list[str]]:
    """The bodies of each group's members."""
    fusion = _fusion(program)
    values = fusion.graph.values
    return [
        [values[number].body or values[number].form.value for number, _ in group.members] for group in fusion.groups
    ]


def _reasons(program: Program) -> set[str]:
    return {reason.value for reason in _fusion(program).reasons.values()}


def _fusion(program: Program) -> Fusion:
    return design(program, for_gpu=False).fusion


def test_a_chain_is_one_group() -> None:
    writer = Writer()
    x = writer.input(3)
    assert _groups(writer.program(writer.negative(writer.exp(writer.tanh(x))))) == [["tanh", "exp", "negative"]]


def test_branches_that_meet_are_one_group() -> None:
    writer = Writer()
    x, y = writer.input(3), writer.input(3)
    assert _groups(writer.program(writer.add(writer.tanh(x), writer.exp(y)))) == [["tanh", "exp", "add"]]


def test_values_that_read_an_input_at_the_same_points_are_one_group() -> None:
    writer = Writer()
    x = writer.input(3, 4)
    results = (writer.softmax(x, axes=(1,)), writer.argmax(x, axes=(1,), keepdims=False), writer.tanh(x))
    assert _groups(writer.program(*results)) == [["max", "subtract", "exp", "sum", "divide", "argmax", "tanh"]]


def test_a_copy_joins_a_group_that_reads_what_it_copies() -> None:
    writer = Writer()
    x, y = writer.input(3, 4), writer.input(3, 4)
    copied = writer.reshape(x, shape=(3, 4))
    assert _groups(writer.program(writer.add(x, y), copied)) == [["add", "store"]]


def test_a_copy_of_which_a_part_is_changed_is_alone() -> None:
    writer = Writer()
    x, y, row = writer.input(3, 4), writer.input(3, 4), writer.input(4)
    added = writer.add(x, y)
    assert _groups(writer.program(added, writer.assign(x, row, axis=0))) == [["add"], ["store"], ["store"]]


def test_values_that_read_an_input_at_other_points_stay_apart() -> None:
    writer = Writer()
    x = writer.input(3, 4)
    turned = writer.exp(writer.transpose(x, permutation=(1, 0)))
    assert _groups(writer.program(turned, writer.tanh(x))) == [["exp"], ["tanh"]]


def test_values_that_share_only_an_input_that_repeats_stay_apart() -> None:
    writer = Writer()
    x, y, bias = writer.input(3, 4), writer.input(3, 4), writer.input(4)
    assert _groups(writer.program(writer.add(x, bias), writer.add(y, bias))) == [["add"], ["add"]]


def test_a_value_of_rows_stays_apart_from_a_group_that_reads_its_operand_for_each_row() -> None:
    writer = Writer()
    x, rows = writer.input(3, 4), writer.input(3, 1)
    program = writer.program(writer.multiply(x, rows), writer.exp(rows))
    assert _groups(program) == [["multiply"], ["exp"]]


def test_a_value_that_reads_what_several_stores_fill_joins_none_of_them() -> None:
    writer = Writer()
    x, value = writer.input(2, 3), writer.input(2, 3)
    assigned = writer.assign_slice(x, value, axes=(1,), lengths=(3,), steps=(-1,), dropped=())
    program = writer.program(assigned, writer.tanh(assigned))
    assert _groups(program)[-1] == ["tanh"]


def test_a_value_does_not_join_a_reader_that_its_other_operand_waits_for() -> None:
    writer = Writer()
    x = writer.input(3, 3)
    product = writer.matmul(writer.tanh(x), x)
    program = writer.program(writer.add(writer.transpose(product, permutation=(1, 0)), x))
    assert _groups(program) == [["tanh"], ["matmul", "add"]]


def test_a_smaller_producer_is_computed_once_and_read() -> None:
    writer = Writer()
    x, bias = writer.input(4, 3), writer.input(3)
    program = writer.program(writer.add(x, writer.exp(bias)))
    assert _groups(program) == [["exp"], ["add"]]
    assert _reasons(program) == {"the two are computed at different points"}


def test_reductions_along_the_same_axes_follow_one_another_in_a_group() -> None:
    writer = Writer()
    x = writer.input(4, 3)
    fusion = _fusion(writer.program(writer.softmax(x, axes=(1,))))
    (group,) = fusion.groups
    assert group.walk == Walk(3, 1)


def test_a_function_before_a_reduction_and_after_it_is_in_its_group() -> None:
    writer = Writer()
    x, epsilon = writer.input(4, 3), writer.scalar()
    assert len(_groups(writer.program(writer.tanh(writer.layer_norm(x, epsilon, axes=(1,)))))) == 1
    assert _groups(writer.program(writer.sum(writer.exp(x), axes=(1,), keepdims=False))) == [["exp", "sum"]]


def test_a_long_chain_is_not_computed_again_for_each_reduction_behind_it() -> None:
    writer = Writer()
    y = writer.input(4, 3)
    for _ in range(10):
        y = writer.tanh(y)
    program = writer.program(writer.softmax(y, axes=(1,)))
    first, second = _groups(program)
    assert first == ["tanh"] * 10
    assert "tanh" not in second
    assert "their kernel would repeat too much work for each reduction" in _reasons(program)


def test_reductions_along_other_axes_begin_a_group() -> None:
    writer = Writer()
    y = writer.tanh(writer.input(4, 3))
    rows, columns = (writer.sum(y, axes=(axis,), keepdims=True) for axis in (0, 1))
    assert _groups(writer.program(rows, columns)) == [["tanh", "sum"], ["sum"]]


def test_work_at_every_point_joins_the_first_step_of_a_long_reduction() -> None:
    writer = Writer()
    y = writer.tanh(writer.input(512, 256))
    total = writer.sqrt(writer.sum(y, axes=(0, 1), keepdims=False))
    program = writer.program(writer.divide(y, total))
    assert _groups(program) == [["tanh", "sum"], ["sum", "sqrt"], ["divide"]]


def test_a_long_search_for_one_position_computes_its_operand_once() -> None:
    writer = Writer()
    y = writer.tanh(writer.input(512, 256))
    first, second = _groups(writer.program(writer.argmax(y, axes=(0, 1), keepdims=False)))
    assert [body for body in first if body in ("tanh", "max", "argmax")] == ["tanh", "max", "argmax"]
    assert "tanh" not in second
    assert second[-1] == "min"


def test_a_reduction_of_a_reduction_begins_a_group() -> None:
    writer = Writer()
    once = writer.sum(writer.input(4, 3), axes=(1,), keepdims=False)
    program = writer.program(writer.sum(writer.exp(once), axes=(0,), keepdims=False))
    assert _groups(program) == [["sum", "exp"], ["sum"]]


def test_an_argument_that_repeats_over_a_part_of_what_is_reduced_keeps_the_reduction_apart() -> None:
    writer = Writer()
    x, w = writer.input(2, 3, 4), writer.input(4)
    program = writer.program(writer.sum(writer.multiply(x, w), axes=(1, 2), keepdims=False))
    assert _groups(program) == [["multiply"], ["sum"]]
    assert "the elements of an array are not evenly apart along the reduced axes" in _reasons(program)


def test_a_sum_of_rows_and_one_of_everything_are_two_groups() -> None:
    writer = Writer()
    x = writer.input(2, 3)
    of_rows, of_all = (writer.sum(x, axes=axes, keepdims=True) for axes in ((1,), (0, 1)))
    assert len(_groups(writer.program(writer.add(writer.add(x, of_rows), of_all)))) == 2


def test_a_value_of_rows_joins_the_reduction_it_uses_through_a_new_axis() -> None:
    writer = Writer()
    x = writer.input(4, 3)
    mean = writer.reshape(writer.mean(x, axes=(1,), keepdims=False), shape=(4, 1))
    assert len(_groups(writer.program(writer.subtract(x, mean)))) == 1


def test_a_value_read_in_two_orders_is_read_from_memory() -> None:
    writer = Writer()
    y = writer.tanh(writer.input(3, 3))
    program = writer.program(writer.add(y, writer.transpose(y, permutation=(1, 0))))
    assert _groups(program) == [["tanh"], ["add"]]
    assert _reasons(program) == {"the consumer needs two elements of the operand at one point"}


def test_a_part_of_a_value_is_read_from_memory() -> None:
    writer = Writer()
    part = writer.slice(writer.tanh(writer.input(6)), (0,), (3,))
    assert _groups(writer.program(writer.exp(part))) == [["tanh"], ["exp"]]


def test_groups_never_wait_for_one_another_in_a_circle() -> None:
    writer = Writer()
    x, w = writer.input(3, 3), writer.input(3, 3)
    y = writer.tanh(x)
    program = writer.program(writer.add(writer.exp(y), writer.matmul(y, w)))
    assert _groups(program) == [["tanh", "exp"], ["matmul", "add"]]
    assert "the consumer needs a third kernel, which waits for the producer" in _reasons(program)


def test_two_groups_with_a_third_between_them_are_not_merged() -> None:
    writer = Writer()
    x, w = writer.input(3, 3), writer.input(3, 3)
    a = writer.tanh(x)
    b = writer.exp(writer.matmul(a, w))
    program = writer.program(writer.add(writer.negative(a), b))
    assert _groups(program) == [["tanh", "negative"], ["matmul", "exp", "add"]]


def test_pointwise_values_at_the_points_of_a_product_are_its_epilogue() -> None:
    writer = Writer()
    x, w, bias, other = writer.input(3, 4), writer.input(4, 5), writer.input(5), writer.input(3, 5)
    y = writer.relu(writer.add(writer.matmul(x, w), bias))
    program = writer.program(writer.add(writer.tanh(other), y))
    assert _groups(program) == [["matmul", "add", "relu", "tanh", "add"]]


def test_a_kernel_computes_one_product() -> None:
    writer = Writer()
    x, w, u = writer.input(3, 4), writer.input(4, 5), writer.input(4, 5)
    program = writer.program(writer.add(writer.matmul(x, w), writer.matmul(x, u)))
    assert _groups(program) == [["matmul"], ["matmul", "add"]]
    assert _reasons(program) == {"a kernel computes at most one product"}


def test_a_product_is_not_reduced_in_its_kernel() -> None:
    writer = Writer()
    product = writer.matmul(writer.input(3, 4), writer.input(4, 5))
    program = writer.program(writer.sum(product, axes=(1,), keepdims=False))
    assert _groups(program) == [["matmul"], ["sum"]]
    assert _reasons(program) == {"the kernel of a product computes only pointwise values beside it"}


def test_an_epilogue_has_the_loops_of_its_product() -> None:
    writer = Writer()
    x, w, shift = writer.input(3, 4), writer.input(4, 6), writer.input(2, 1)
    heads = writer.add(writer.reshape(writer.matmul(x, w), shape=(3, 2, 3)), shift)
    assert _groups(writer.program(heads)) == [["matmul"], ["add"]]


@pytest.mark.parametrize(
    ("shape", "other"), [((3, 2, 3), (2, 3)), ((3, 2, 3), (3, 1, 1)), ((3, 3, 2), (3, 3, 2)), ((18,), (18,))], ids=str
)
def test_an_epilogue_has_more_axes_than_its_product_if_arrays_walk_evenly(shape: Shape, other: Shape) -> None:
    writer = Writer()
    x, w, bias = writer.input(3, 4), writer.input(4, 6), writer.input(*other)
    parts = writer.tanh(writer.add(writer.reshape(writer.matmul(x, w), shape=shape), bias))
    program = writer.program(parts)
    assert _groups(program) == [["matmul", "add", "tanh"]]
    inputs = random_inputs(program)
    for ours, expected in zip(run_program(program, inputs), run_op_by_op(program, inputs), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_an_epilogue_is_bounded() -> None:
    writer = Writer()
    y = writer.matmul(writer.input(3, 4), writer.input(4, 5))
    for _ in range(MOST_BESIDE_PRODUCT + 1):
        y = writer.tanh(y)
    first, rest = _groups(writer.program(y))
    assert len(first) == MOST_BESIDE_PRODUCT + 1
    assert rest == ["tanh"]


def test_what_is_made_of_scalars_and_positions_is_inlined() -> None:
    writer = Writer()
    x = writer.input(4)
    start, step = writer.scalar(), writer.scalar()
    ramp = writer.arange(start, step, length=4, dtype=dtypes.float32.code)
    program = writer.program(writer.add(x, ramp), writer.multiply(writer.exp(x), ramp))
    fusion = _fusion(program)
    assert all(len(group.inlined) == 4 for group in fusion.groups)
    assert not any(
        fusion.is_stored[number] for number, value in enumerate(fusion.graph.values) if value.body == "index"
    )


def test_what_is_inlined_and_live_is_stored_once() -> None:
    writer = Writer()
    start, step = writer.scalar(), writer.scalar()
    ramp = writer.arange(start, step, length=4, dtype=dtypes.float32.code)
    assert len(_groups(writer.program(ramp))) == 1


def _normals(writer: Writer, *shape: int) -> int:
    key = writer.scalar(dtypes.uint64)
    return int(writer.normal_of_bits(writer.random_bits(key, key, key, shape=shape)))


def test_random_numbers_are_computed_where_they_are_used() -> None:
    writer = Writer()
    x = writer.input(4, 6, dtype=dtypes.float64)
    program = writer.program(writer.multiply(x, _normals(writer, 4, 6)))
    assert _groups(program) == [["random_bits", "normal_of_bits", "multiply"]]


def test_random_numbers_that_repeat_are_computed_once() -> None:
    writer = Writer()
    x = writer.input(100, 6, dtype=dtypes.float64)
    program = writer.program(writer.multiply(x, _normals(writer, 6)))
    assert [names[-1] for names in _groups(program)] == ["normal_of_bits", "multiply"]


def test_gathered_data_is_read_from_memory() -> None:
    writer = Writer()
    x, indices = writer.input(5, 3), writer.input(2, dtype=dtypes.int64)
    program = writer.program(writer.take(writer.tanh(x), indices, axis=0))
    assert _groups(program) == [["tanh"], ["gather"]]
    assert _reasons(program) == {"the consumer gathers elements from anywhere in the operand"}


def test_pieces_of_a_concatenation_are_stored_by_their_producers() -> None:
    writer = Writer()
    x, y = writer.input(3), writer.input(4)
    program = writer.program(writer.concat(writer.tanh(x), writer.exp(y), axis=0))
    assert _groups(program) == [["tanh", "store"], ["exp", "store"]]


@pytest.mark.parametrize("rows", [1, 4])
def test_one_element_is_reduced_like_many(rows: int) -> None:
    writer = Writer()
    x = writer.input(rows, 1)
    fusion = _fusion(writer.program(writer.exp(writer.sum(writer.tanh(x), axes=(1,), keepdims=True))))
    (group,) = fusion.groups
    assert group.walk == Walk(1, 0)


def test_separated_values_are_alone() -> None:
    writer = Writer()
    x, epsilon = writer.input(4, 3), writer.scalar()
    fusion = design_separately(writer.program(writer.tanh(writer.layer_norm(x, epsilon, axes=(1,))))).fusion
    computed = [value for value in fusion.graph.values if value.form in (Form.POINTWISE, Form.REDUCTION)]
    assert [len(group.members) for group in fusion.groups] == [1] * len(computed)
