"""Linking: the kernels of a program's ops behind one another, so that a row of tier 0 is one call. Pure.

What takes time at tier 0 is Python between the kernels. A linked program has no more of that for many ops than for one:
each op's launch is that of its one-op plan with other operands, and all of them are found in a few steps over arrays.
Nothing is fused, so the bits are those of the ops one by one; nothing is compiled. Values share no memory, which bounds
what is linked: of large values it is not Python that takes the time.
"""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

import numpy as np

from fusewire_kernels.plan import ARENA_COLUMN, OperandRef, Plan
from fusewire_kernels.slots import addresses_in_order
from fusewire_protos.catalogue import Category
from fusewire_protos.program import Integers, Program
from fusewire_protos.signatures import Signature

MOST_BYTES = 4 << 20  # that the values of a linked program may take
MOST_OPS = 2048  # which take half a millisecond to link
MOST_DISTINCT = 256  # of its ops
SCALAR_BYTES = 8  # a slot

_ALIGNMENT_BYTES = 64
_OF_ONE_KERNEL = (Category.POINTWISE, Category.REDUCTION, Category.PRODUCT, Category.VIEW)

_size_of = attrgetter("size_bytes")


class Linked(NamedTuple):
    """Where the values of a linked program are, and what each launch works on.

    Slots are the address of the row's scratch memory, in which scalars and results are, and those of the inputs.
    """

    operands: Integers  # int64[all operands of all launches][column, byte offset]
    ends: Integers  # of each op, where its operands end among all
    live_bytes: tuple[tuple[int, int], ...]  # of each live result, where it begins in the scratch memory and ends
    scratch_bytes: int


def may_be_linked(program: Program) -> bool:
    """Whether one-op plans of its ops, if they were there, would be linked."""
    return (
        program.op_count <= MOST_OPS
        and len(program.distinct) <= MOST_DISTINCT
        and program.all_bytes <= MOST_BYTES
        and all(_is_one_kernel(signature) for signature in program.distinct)
    )


def is_one_launch(plan: Plan, operands: int) -> bool:
    """Whether a plan is one launch over so many inputs and one result, in this order: what an op's plan mostly is."""
    if plan.arena_bytes or len(plan.launches) != 1 or addresses_in_order(plan) != (operands, 1):
        return False
    columns = range(ARENA_COLUMN + 1, ARENA_COLUMN + 1 + operands + 1)
    return plan.launches[0].instances == (tuple([OperandRef(column, 0) for column in columns]),)


def link(program: Program) -> Linked:
    """Of a program whose one-op plans are one launch each."""
    operands, ends = _operand_numbers(program)
    sizes_bytes = np.array([*map(_size_of, program.distinct)], np.int64)[program.signature_numbers]
    first_byte = _aligned(SCALAR_BYTES * len(program.scalars))
    result_ends = first_byte + np.cumsum(_aligned(sizes_bytes))
    result_begins = result_ends - _aligned(sizes_bytes)
    places = np.zeros((program.first_result + program.op_count, 2), np.int64)
    inputs = len(program.inputs)
    places[:inputs, 0] = np.arange(1, 1 + inputs)
    places[inputs : program.first_result, 1] = SCALAR_BYTES * np.arange(len(program.scalars))
    places[program.first_result :, 1] = result_begins
    live = [*program.live]
    begins = result_begins[live]
    live_bytes = zip(begins.tolist(), (begins + sizes_bytes[live]).tolist(), strict=True)
    return Linked(places[operands], ends, tuple(live_bytes), int(result_ends[-1]))


def _is_one_kernel(signature: Signature) -> bool:
    return signature.op.category in _OF_ONE_KERNEL and signature.starts == 0


def _operand_numbers(program: Program) -> tuple[Integers, Integers]:
    """The operand numbers of each op with that of its result behind, and where each op's end."""
    ops = np.arange(program.op_count)
    ends = program.operand_ends + ops + 1
    numbers = np.empty(ends[-1], np.int64)
    is_result = np.zeros(len(numbers), bool)
    is_result[ends - 1] = True
    numbers[is_result] = program.first_result + ops
    numbers[~is_result] = program.operand_numbers
    return numbers, ends


def _aligned(sizes_bytes: int | Integers) -> int | Integers:
    return (sizes_bytes + _ALIGNMENT_BYTES - 1) & -_ALIGNMENT_BYTES
