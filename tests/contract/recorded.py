"""A program as a client records it: its ops again and again, each result on the next turn in place of its like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import fusewire as fw
from fusewire._recording.record_op import apply, create
from fusewire_kernels.ops.conversions import scalar
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.op import Category
from fusewire_protos.programs.program import ProgramOp
from tests.strategies import Work


def record_loop(session: fw.Session, work: Work, *, turns: int) -> list[fw.Array]:
    """The live results of the last turn. An input that has the spec of a live result is that result, a turn later."""
    program = work.program
    inputs = [session.array(array) for array in work.inputs]
    scalars = [scalar(np, value, dtype)[()] for value, dtype in zip(work.scalars, program.scalars, strict=True)]
    results: list[fw.Array] = []
    for _ in range(turns):
        values: list[Any] = [*inputs, *scalars]
        starts = iter(work.starts)
        for op in program.ops:
            values.append(_recorded(session, op, [values[operand] for operand in op.operands], starts))
        results = [values[program.first_result + index] for index in program.live]
        inputs = [_successor(array, results) for array in inputs]
    return results


def _recorded(session: fw.Session, op: ProgramOp, operands: list[Any], starts: Iterator[int]) -> fw.Array:
    """An op of scalars alone takes the first of them as an array, unless it creates one."""
    result: fw.Array
    if not any(isinstance(operand, fw.Array) for operand in operands):
        if op.op.category is Category.CREATE:
            scalars = [(dtypes.from_numpy(operand.dtype), operand.item()) for operand in operands]
            result = create(fw.Array, session.recorder(), op.op, scalars, op.attributes)
            return result
        operands[0] = session.array(operands[0])
    own = [next(starts) for _ in range(op.op.starts(op.attributes))]
    result = apply(op.op, operands, op.attributes, own)
    return result


def _successor(array: fw.Array, results: Sequence[fw.Array]) -> fw.Array:
    return next((each for each in results if (each.dtype, each.shape) == (array.dtype, array.shape)), array)
