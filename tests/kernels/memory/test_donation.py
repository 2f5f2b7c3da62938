"""Which results may be written over which inputs."""

from __future__ import annotations

from fusewire_kernels.build import design
from fusewire_kernels.plan.plan import Donation
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program
from tests.kernels.plan_runner import plan_without_text
from tests.kernels.programs import Writer


def _donations(program: Program) -> set[Donation]:
    return set(plan_without_text(design(program, for_gpu=False)).donations)


def test_a_pointwise_result_may_lie_on_its_operand() -> None:
    writer = Writer()
    x, y = writer.input(3), writer.input(3)
    assert _donations(writer.program(writer.add(x, y))) == {Donation(0, 0), Donation(1, 0)}


def test_a_result_of_another_size_may_not() -> None:
    writer = Writer()
    x = writer.input(4, 3)
    assert _donations(writer.program(writer.sum(x, axes=(0,), keepdims=False))) == set()
    halves = Writer()
    assert _donations(halves.program(halves.astype(halves.input(3), dtype=dtypes.float16.code))) == set()


def test_equal_item_sizes_are_enough() -> None:
    writer = Writer()
    x = writer.input(3)
    assert _donations(writer.program(writer.astype(x, dtype=dtypes.int32.code))) == {Donation(0, 0)}


def test_an_input_that_is_read_after_the_result_is_written_may_not_be_overwritten() -> None:
    writer = Writer()
    x = writer.input(3, 3)
    y = writer.tanh(x)
    assert Donation(0, 0) not in _donations(writer.program(y, writer.matmul(y, x)))


def test_an_input_that_is_no_longer_read_when_the_result_is_written_may_be_overwritten() -> None:
    writer = Writer()
    x, w = writer.input(3, 3), writer.input(3, 3)
    program = writer.program(writer.matmul(writer.matmul(x, w), w))
    assert _donations(program) == {Donation(0, 0)}


def test_an_input_read_in_another_order_may_not_be_overwritten() -> None:
    writer = Writer()
    x, y = writer.input(3, 3), writer.input(3, 3)
    program = writer.program(writer.add(x, writer.transpose(y, permutation=(1, 0))))
    assert _donations(program) == {Donation(0, 0)}


def test_an_input_read_twice_by_the_same_kernel_may_not_be_overwritten() -> None:
    writer = Writer()
    x = writer.input(3, 3)
    program = writer.program(writer.add(x, writer.transpose(x, permutation=(1, 0))))
    assert _donations(program) == set()


def test_an_input_that_is_reduced_may_not_be_overwritten_by_the_same_launch() -> None:
    writer = Writer()
    assert _donations(writer.program(writer.softmax(writer.input(4, 3), axes=(1,)))) == set()


def test_an_input_that_another_instance_of_the_launch_reads_may_not_be_overwritten() -> None:
    writer = Writer()
    x, y = writer.input(3, 3), writer.input(3, 3)
    turned = [writer.transpose(each, permutation=(1, 0)) for each in (x, y)]
    program = writer.program(writer.add(x, turned[1]), writer.add(y, turned[0]))
    assert _donations(program) == set()


def test_an_assignment_may_lie_on_its_target_if_the_value_comes_from_elsewhere() -> None:
    writer = Writer()
    x, value = writer.input(6), writer.input(2)
    assigned = writer.assign_slice(x, value, axes=(0,), lengths=(2,), steps=(1,), dropped=())
    assert _donations(writer.program(assigned)) == {Donation(0, 0)}


def test_an_assignment_of_a_part_of_its_own_target_may_not_lie_on_it() -> None:
    writer = Writer()
    x = writer.input(6)
    part = writer.slice(x, (0,), (2,))
    assigned = writer.assign_slice(x, part, axes=(0,), lengths=(2,), steps=(1,), dropped=())
    assert _donations(writer.program(assigned)) == set()


def test_of_many_inputs_a_few_are_found_that_are_read_last() -> None:
    writer = Writer()
    matrices = [writer.input(3, 3) for _ in range(7)]
    result = matrices[0]
    for matrix in matrices[1:]:
        result = writer.matmul(result, matrix)
    found = [donation.input for donation in plan_without_text(design(writer.program(result), for_gpu=False)).donations]
    assert found == [5, 4, 3, 2]
