"""Turned bodies of loops compute what the bodies compute, with a carried value as left operand of the product."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.fusion.rotation import turned
from fusewire_protos.ops.catalogue import Category
from fusewire_protos.programs.program import Program
from tests.kernels.loops_of_note import leaky, pointwise, recurrent
from tests.kernels.op_by_op import run_op_by_op
from tests.kernels.programs import Writer, random_inputs

Array = npt.NDArray[Any]


def reads_the_left_operand_again() -> Program:
    """x = t @ w + t, with t = tanh(x)."""
    writer = Writer()
    x, w = writer.input(4, 8), writer.input(8, 8)
    t = writer.tanh(x)
    following = writer.add(writer.matmul(t, w), t)
    return writer.program(following, carried=[(x, following)])


def keeps_the_left_operand() -> Program:
    writer = Writer()
    x, w = writer.input(4, 8), writer.input(8, 8)
    t = writer.tanh(x)
    following = writer.matmul(t, w)
    return writer.program(t, following, carried=[(x, following)])


def needs_what_the_left_operand_needs() -> Program:
    writer = Writer()
    x, w = writer.input(4, 8), writer.input(8, 8)
    e = writer.exp(x)
    following = writer.add(writer.matmul(writer.tanh(e), w), e)
    return writer.program(following, carried=[(x, following)])


def reduces_before() -> Program:
    writer = Writer()
    x, w = writer.input(4, 8), writer.input(8, 8)
    following = writer.matmul(writer.subtract(x, writer.max(x, axes=(1,), keepdims=True)), w)
    return writer.program(following, carried=[(x, following)])


def carries_nothing_to_the_left() -> Program:
    writer = Writer()
    x, y, w = writer.input(4, 8), writer.input(4, 8), writer.input(8, 8)
    following = writer.add(x, writer.matmul(writer.tanh(y), w))
    return writer.program(following, carried=[(x, following)])


def carries_another_input() -> Program:
    writer = Writer()
    x, y, w = writer.input(4, 8), writer.input(4, 8), writer.input(8, 8)
    following = writer.add(y, writer.matmul(writer.tanh(x), w))
    return writer.program(following, carried=[(x, y)])


def iterated(program: Program, inputs: list[Array], scalars: tuple[float, ...], count: int) -> list[Array]:
    """The live results of the last of so many iterations."""
    results: list[Array] = []
    for _ in range(count):
        results = run_op_by_op(program, np, inputs, scalars, (), None)
        sources = [(number, program.live.index(source - program.first_result)) for number, source in program.carried]
        for number, position in sources:
            inputs[number] = results[position]
    return results


@pytest.mark.parametrize("program", [leaky(4, 8), reads_the_left_operand_again()], ids=["leaky", "read again"])
def test_a_turned_body_gives_the_same_bits(program: Program) -> None:
    loop = turned(program)
    assert loop is not None
    scalars = (0.75, 0.5)[: len(program.scalars)]
    inputs = random_inputs(program, 1)
    state = inputs[0] * np.float32(0.75) if scalars else inputs[0]
    left = run_op_by_op(_tanh(), np, (state,), (), (), None)[0]
    expected = iterated(program, [*inputs], scalars, 5)
    found = iterated(loop.program, [*inputs, left], scalars, 5)
    assert [each.tobytes() for each in found[:-1]] == [each.tobytes() for each in expected]


def _tanh() -> Program:
    writer = Writer()
    return writer.program(writer.tanh(writer.input(4, 8)))


def test_the_left_operand_of_the_turned_body_is_carried() -> None:
    program = leaky(4, 8)
    loop = turned(program)
    assert loop is not None
    (product,) = [
        operands
        for signature, operands in zip(loop.program.signatures, loop.program.operands, strict=True)
        if signature.op.category is Category.PRODUCT
    ]
    assert product[0] == len(program.inputs)
    assert dict(loop.program.carried)[product[0]] == loop.program.first_result + loop.program.live[-1]
    assert loop.read_ahead == {len(program.inputs) + 1}  # the first scalar


@pytest.mark.parametrize(
    "program",
    [
        recurrent(4, 8),
        pointwise(),
        keeps_the_left_operand(),
        needs_what_the_left_operand_needs(),
        reduces_before(),
        carries_nothing_to_the_left(),
        carries_another_input(),
    ],
)
def test_other_bodies_are_not_turned(program: Program) -> None:
    assert turned(program) is None
