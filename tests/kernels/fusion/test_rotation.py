"""Rotated bodies of loops compute what the bodies compute, with a carried value as left operand of the product."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy.typing as npt
import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.fusion.rotation import RotatedLoop, rotated
from fusewire_kernels.plan.plan import ArenaColumn, InputColumn, OutputColumn
from fusewire_protos.ops.catalogue import Category
from fusewire_protos.programs.program import Program, build
from tests.kernels.loops_of_note import leaky, pointwise, recurrent
from tests.kernels.programs import Writer, meaning, random_inputs

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


def drawn(draw: random.Random) -> Program:
    """Pointwise ops, a product of one of their results, and further pointwise ops, on two states that are carried."""
    writer = Writer()
    x, y, w, b = writer.input(3, 4), writer.input(3, 4), writer.input(4, 4), writer.input(4)
    narrow, whole = [b, writer.scalar(), writer.scalar()], [x, y]

    def some_ops() -> None:
        for _ in range(draw.randint(1, 4)):
            if draw.random() < 0.4:
                whole.append(writer.op(draw.choice(["tanh", "negative", "abs"]), draw.choice(whole)))
            else:
                other = draw.choice([*narrow, *whole])
                whole.append(writer.op(draw.choice(["add", "multiply", "maximum"]), draw.choice(whole), other))

    some_ops()
    whole.append(writer.matmul(draw.choice(whole[2:]), w))
    some_ops()
    sources = [whole[-1], draw.choice(whole[2:])]
    carried = [(x, sources[0]), (y, sources[1])][: draw.randint(1, 2)]
    return writer.program(*{source for _, source in carried}, carried=carried)


class Leaves(NamedTuple):
    """What an iteration binds to the inputs that are not carried, and to the scalars."""

    inputs: list[Array]
    scalars: list[float]


def leaves(program: Program, read_ahead: frozenset[int], seed: int, steps: int) -> list[Leaves]:
    """Other leaves for each iteration, but for those that are read ahead."""
    first = Leaves(random_inputs(program, seed), [0.75, -0.5][: len(program.scalars)])
    each = [first]
    for step in range(1, steps):
        inputs, scalars = random_inputs(program, seed + step), [value / (step + 1) for value in first.scalars]
        for number in read_ahead:
            if number < len(inputs):
                inputs[number] = first.inputs[number]
            else:
                scalars[number - len(inputs) - 1] = first.scalars[number - len(inputs) - 1]
        each.append(Leaves(inputs, scalars))
    return each


def iterations(program: Program, bound: Sequence[Leaves]) -> list[list[bytes]]:
    """The live results of each iteration."""
    states: dict[int, Array] = {}
    results = []
    for inputs, scalars in bound:
        found = meaning(program, [states.get(number, array) for number, array in enumerate(inputs)], scalars)
        results.append([each.tobytes() for each in found])
        states = {each.input: found[program.live.index(each.source - program.first_result)] for each in program.carried}
    return results


def first_left_operand(program: Program, bound: Leaves) -> Array:
    products = [op for op, each in enumerate(program.signatures) if each.op.category is Category.PRODUCT]
    left = program.operands[products[0]][0] - program.first_result
    return meaning(build(program.inputs, program.scalars, program.ops, [left]), *bound)[0]


def assert_same_bits(program: Program, loop: RotatedLoop, seed: int) -> None:
    bound = leaves(program, loop.read_ahead, seed, steps=4)
    left = first_left_operand(program, bound[0])
    found = iterations(loop.program, [Leaves([*inputs, left], scalars) for inputs, scalars in bound])
    assert [results[:-1] for results in found] == iterations(program, bound)


@pytest.mark.parametrize("program", [leaky(4, 8), reads_the_left_operand_again()], ids=["leaky", "read again"])
def test_a_rotated_body_gives_the_same_bits(program: Program) -> None:
    loop = rotated(program)
    assert loop is not None
    assert_same_bits(program, loop, seed=1)


def test_drawn_bodies_give_the_same_bits_when_they_are_rotated() -> None:
    programs = [drawn(random.Random(seed)) for seed in range(400)]
    loops = [(program, loop) for program in programs if (loop := rotated(program)) is not None]
    assert len(loops) > 50
    for seed, (program, loop) in enumerate(loops):
        assert_same_bits(program, loop, seed)


def test_a_plan_has_the_kernel_of_any_rotated_body_that_is_one_launch() -> None:
    """Each operand of the kernel is that of the rotated body, in the columns of the plan."""
    found = 0
    for seed in range(200):
        program = drawn(random.Random(seed))
        plan = build_plan(program, "cuda")
        if plan.persistent is None or not plan.persistent.launches_before:
            continue
        found += 1
        loop = rotated(program)
        assert loop is not None
        alone = build_plan(loop.program, "cuda")
        assert alone.persistent is not None
        # Columns of different types may be equal as tuples.
        of_left = [repr(InputColumn(len(program.inputs))), repr(OutputColumn(len(program.live)))]
        operands = zip(plan.persistent.operands, alone.persistent.operands, strict=True)
        for index, (operand, wanted) in enumerate(operands):
            column, wanted_column = repr(plan.columns[operand.column]), repr(alone.columns[wanted.column])
            assert column == (repr(ArenaColumn()) if wanted_column in of_left else wanted_column)
            leaf = wanted.column - 1  # behind the arena's column come those of the inputs and of the scalars
            assert leaf not in loop.read_ahead or index in plan.persistent.fixed
    assert found > 20


def test_the_left_operand_of_the_turned_body_is_carried() -> None:
    program = leaky(4, 8)
    loop = rotated(program)
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
    assert rotated(program) is None
