"""Rotates the body of a loop, so that the left operand of its matrix product is a carried value. Pure.

In `x = x + (tanh(x) @ w - x) * s` the left operand is computed from a carried value by pointwise ops. The rotated body
computes it at the end of the iteration before:

    once          t = tanh(x)
    iterations    x = x + (t @ w - x) * s;  t = tanh(x)

Each op is done as often as before, but for the ops of `t`, which are done once more at the end. Results have the same
bits.
"""

from __future__ import annotations

from typing import NamedTuple

from fusewire_protos.ops.catalogue import Category
from fusewire_protos.programs.program import Program, ProgramOp, build


class RotatedLoop(NamedTuple):
    """A rotated body. Its last input is the left operand of the product, and its last live result is the next one.

    The other inputs, scalars and live results are those of the body. The operands `read_ahead` are inputs and scalars
    that the ops of the left operand read: an iteration reads them for the iteration that follows.
    """

    program: Program
    read_ahead: frozenset[int]


def rotated(program: Program) -> RotatedLoop | None:
    """Returns the rotated body of a loop, or None if there is no such body.

    There is one if the body has one product, of which pointwise ops compute the left operand from carried values. These
    values must be computed by the other ops of the body, and nothing else may need the results of the pointwise ops:
    neither the client nor, but for the left operand, the other ops.
    """
    products = [index for index, each in enumerate(program.signatures) if each.op.category is Category.PRODUCT]
    if len(products) != 1:
        return None
    left = program.operands[products[0]][0] - program.first_result
    if left < 0:
        return None
    ahead = _needed_for(program, left)
    return _built(program, left, ahead) if _can_be_last(program, left, ahead) else None


def _needed_for(program: Program, index: int) -> set[int]:
    """Returns an op and the ops that it depends on, by index."""
    needed, reached = set[int](), [index]
    while reached:
        op = reached.pop()
        if op not in needed:
            needed.add(op)
            reached += [each - program.first_result for each in program.operands[op] if each >= program.first_result]
    return needed


def _can_be_last(program: Program, left: int, ahead: set[int]) -> bool:
    """Returns whether the ops `ahead`, which compute op `left`, can be done at the end of the iteration before."""
    first, source_of = program.first_result, dict(program.carried)
    are_pointwise = all(program.signatures[op].op.category is Category.POINTWISE for op in ahead)
    read = {each for op in ahead for each in program.operands[op]}
    sources = {source_of[number] - first for number in read if number in source_of}
    others = {each - first for op in range(program.op_count) if op not in ahead for each in program.operands[op]}
    needed_elsewhere = (others | {*program.live}) & ahead - {left}
    is_kept = left in program.live
    return (
        bool(sources) and min(sources) >= 0 and are_pointwise and not (sources & ahead or needed_elsewhere or is_kept)
    )


def _built(program: Program, left: int, ahead: set[int]) -> RotatedLoop:
    first, new_input, source_of = program.first_result, len(program.inputs), dict(program.carried)
    order = [op for op in range(program.op_count) if op not in ahead] + sorted(ahead)
    place_of = {op: place for place, op in enumerate(order)}

    def number_of(operand: int) -> int:
        """Returns the operand's number in the rotated body."""
        if operand < new_input:
            return operand
        return operand + 1 if operand < first else first + 1 + place_of[operand - first]

    def operand_of(op: int, operand: int) -> int:
        if op in ahead:
            return number_of(source_of.get(operand, operand))
        return new_input if operand == first + left else number_of(operand)

    ops = [
        ProgramOp(each.op, tuple([operand_of(op, operand) for operand in each.operands]), each.attributes)
        for op in order
        for each in (program.ops[op],)
    ]
    carried = [(number, number_of(source)) for number, source in program.carried]
    inputs = (*program.inputs, program.result_spec(left))
    live = (*[place_of[index] for index in program.live], place_of[left])
    made = build(inputs, program.scalars, ops, live, [*carried, (new_input, number_of(first + left))])
    read = {each for op in ahead for each in program.operands[op] if each < first and each not in source_of}
    return RotatedLoop(made, frozenset(map(number_of, read)))
