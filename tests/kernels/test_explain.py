"""Plans in words."""

from __future__ import annotations

from fusewire_kernels.build import design
from tests.kernels.plan_runner import plan_without_text
from tests.kernels.programs import Writer


def test_each_launch_names_its_ops_and_each_refusal_its_reason() -> None:
    writer = Writer()
    x, w = writer.input(3, 3), writer.input(3, 3)
    negative = writer.negative(writer.matmul(x, w))
    program = writer.program(writer.sum(negative, axes=(1,), keepdims=False))
    assert plan_without_text(design(program, for_gpu=False)).explanation == (
        "launch 0: matmul #0 + negative #1",
        "launch 1: sum #2",
        "sum #2 not fused with negative #1: the kernel of a product computes only pointwise values beside it",
    )


def test_a_refusal_names_the_operand_and_not_what_was_computed_beside_it() -> None:
    writer = Writer()
    a = writer.tanh(writer.input(3, 4))
    program = writer.program(writer.exp(a), writer.sqrt(writer.slice(a, (1,), (3,))))
    apart = "the consumer reads a part of the operand, or reads it in an order without common loops"
    assert f"sqrt #3 not fused with tanh #0: {apart}" in plan_without_text(design(program, for_gpu=False)).explanation


def test_a_launch_says_why_it_is_apart_from_one_that_reads_its_input_too() -> None:
    writer = Writer()
    x = writer.input(3, 4)
    turned = writer.transpose(x, permutation=(1, 0))
    program = writer.program(writer.tanh(x), writer.exp(turned), writer.exp(writer.slice(x, (1,), (3,))))
    lines = plan_without_text(design(program, for_gpu=False)).explanation
    apart = "separate from launch 0, which reads input 0 too: only groups of one kernel become one launch"
    assert f"launch 1 {apart}" in lines
    assert f"launch 2 {apart}" in lines


def test_launches_of_one_kernel_are_apart_by_their_sizes() -> None:
    writer = Writer()
    x = writer.input(8)
    program = writer.program(writer.exp(x), writer.exp(writer.slice(x, (0,), (3,))))
    assert plan_without_text(design(program, for_gpu=False)).explanation[-1] == (
        "launch 1 separate from launch 0, which reads input 0 too: only groups of the same sizes become one launch"
    )


def test_a_launch_that_waits_for_another_needs_no_other_reason() -> None:
    writer = Writer()
    x = writer.input(3, 3)
    program = writer.program(writer.matmul(writer.matmul(x, x), x))
    assert plan_without_text(design(program, for_gpu=False)).explanation == (
        "launch 0: matmul #0",
        "launch 1: matmul #1",
    )


def test_instances_are_counted_and_equal_refusals_told_once() -> None:
    writer = Writer()
    x = writer.input(3, 3)
    weights = [writer.input(3, 3), writer.input(3, 3)]
    program = writer.program(*(writer.sum(writer.matmul(x, weight), axes=(1,), keepdims=False) for weight in weights))
    assert plan_without_text(design(program, for_gpu=False)).explanation == (
        "launch 0: 2 × (matmul #0; matmul #2)",
        "launch 1: 2 × (sum #1; sum #3)",
        "sum #1 not fused with matmul #0: the kernel of a product computes only pointwise values beside it (2 times)",
    )
