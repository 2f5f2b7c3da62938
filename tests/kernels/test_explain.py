"""Plans in words."""

from __future__ import annotations

from fusewire_kernels.build import design
from tests.kernels.plan_runner import plan_without_text
from tests.kernels.programs import Writer


def test_each_launch_names_its_ops_and_each_refusal_its_reason() -> None:
    writer = Writer()
    x, w = writer.input(3, 3), writer.input(3, 3)
    program = writer.program(writer.tanh(writer.negative(writer.matmul(x, w))))
    assert plan_without_text(design(program)).explanation == (
        "launch 0: matmul #0",
        "launch 1: negative #1 + tanh #2",
        "negative #1 not fused with matmul #0: a product stands alone",
    )


def test_instances_are_counted_and_equal_refusals_told_once() -> None:
    writer = Writer()
    x = writer.input(3, 3)
    weights = [writer.input(3, 3), writer.input(3, 3)]
    program = writer.program(*(writer.tanh(writer.matmul(x, weight)) for weight in weights))
    assert plan_without_text(design(program)).explanation == (
        "launch 0: 2 × (matmul #0; matmul #2)",
        "launch 1: 2 × (tanh #1; tanh #3)",
        "tanh #1 not fused with matmul #0: a product stands alone (2 times)",
    )
