"""Runs one row of a program op by op on NumPy arrays: what plans, and tier 0, are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.ops.composites import expand
from fusewire_kernels.ops.conversions import scalar
from fusewire_kernels.ops.reference import twin
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.steps import steps_of
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.op import Category
from fusewire_protos.ops.signatures import Signature
from fusewire_protos.programs.program import Program

Array = npt.NDArray[Any]
RunOp = Callable[[Signature, Sequence[Array], Sequence[int]], Array]  # (op, operands, slice starts) → the result
RunCall = Callable[[OneOpCall, Sequence[Array], Sequence[int]], Array]


def by_twin(signature: Signature, operands: Sequence[Array], starts: Sequence[int]) -> Array:
    """The result of an op by its NumPy twin, or by those of its expansion."""
    if signature.op.category is Category.COMPOSITE:
        program, constants = expand(signature.op, signature.operands, signature.attributes)
        return run_op_by_op(program, operands, constants, starts)[0]
    return np.array(twin(signature.op)(np, operands, signature.attributes, starts), order="C")


def run_op_by_op(
    program: Program,
    inputs: Sequence[Array],
    scalars: Sequence[int | float] = (),
    starts: Sequence[int] = (),
    run_op: RunOp = by_twin,
) -> list[Array]:
    """The live results in order, each in C order."""
    values = [*inputs, *[scalar(np, value, dtype) for value, dtype in zip(scalars, program.scalars, strict=True)]]
    left = iter(starts)
    for signature, operands in zip(program.signatures, program.operands, strict=True):
        of_op = [*islice(left, signature.starts)]
        values.append(run_op(signature, [values[operand] for operand in operands], of_op))
    return [values[program.first_result + index] for index in program.live]


def in_steps(run_call: RunCall) -> RunOp:
    """Returns what runs an op in the steps that tier 0 runs. `run_call` computes a step.

    A step takes the bits of its operands as values of the dtypes that its call names.
    """

    def run_op(signature: Signature, operands: Sequence[Array], starts: Sequence[int]) -> Array:
        constants, steps = steps_of(signature)
        values = [*operands, *[scalar(np, each.value, each.dtype) for each in constants]]
        for step in steps:
            of_step = starts if step.call.op.takes_starts else ()
            given = [values[number] for number in step.operands]
            seen = [
                each.view(dtypes.to_numpy(spec.dtype)) for each, spec in zip(given, step.call.operands, strict=True)
            ]
            values.append(run_call(step.call, seen, of_step))
        result: Array = values[-1].view(dtypes.to_numpy(signature.result.dtype))
        return result

    return run_op
