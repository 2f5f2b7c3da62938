"""Runs programs op by op with NumPy. The in-memory server of the tests, `MemoryServer`, uses it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.op import Attributes, Category, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program

Host = npt.NDArray[Any]
# Takes a program, its inputs, its scalars and its slice starts, and returns the results of all ops of the program.
Execute = Callable[[Program, Sequence[Host], Sequence[Any], Sequence[int]], Sequence[Host]]

# The compiler is imported only when a program runs, because all other code of the client must work without it.
_REFERENCE_MODULE = "fusewire_kernels.ops.reference"
_COMPOSITES_MODULE = "fusewire_kernels.ops.composites"


def interpret(
    program: Program, inputs: Sequence[Host], scalars: Sequence[Any], starts: Sequence[int]
) -> Sequence[Host]:
    """Returns the results of all ops of a program, in the order of the ops."""
    values = list(inputs)
    values += [
        np.asarray(value).astype(dtypes.to_numpy(dtype)) for dtype, value in zip(program.scalars, scalars, strict=True)
    ]
    remaining = list(starts)
    for op, operands, attributes in program.ops:
        count = op.starts(attributes)
        own, remaining = remaining[:count], remaining[count:]
        values.append(_result(op, [values[operand] for operand in operands], attributes, own))
    return values[program.first_result :]


def _result(op: Op, operands: Sequence[Host], attributes: Attributes, starts: Sequence[int]) -> Host:
    """Returns the result of an op. A composite op is run as the program to which a server expands it."""
    if op.category is Category.COMPOSITE:
        specs = tuple(Spec(dtypes.from_numpy(each.dtype), each.shape) for each in operands)
        program, constants = importlib.import_module(_COMPOSITES_MODULE).expand(op, specs, attributes)
        return interpret(program, operands, constants, ())[-1]
    result: Host = importlib.import_module(_REFERENCE_MODULE).twin(op)(np, operands, attributes, starts)
    return result
