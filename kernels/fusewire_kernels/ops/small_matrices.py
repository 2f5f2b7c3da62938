"""Says which calls of linear algebra have kernels of ours: those of matrices with few rows and columns. Pure.

An op always has a kernel for a shape, or never. So its bits belong to the op, the dtype and the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusewire_protos.ops.op import Category, Op
from fusewire_protos.ops.shapes import Shape, Spec
from fusewire_protos.programs.program import Program

MOST_SIDE = 64  # rows and columns of each operand: 64 × 64 float64 fit in the memory that a block of a GPU has
# About how many operations an op takes, in products of the sides of a matrix with the lesser one: rotations come in
# some ten sweeps.
_OPERATIONS = {"cholesky": 1, "solve": 2, "inv": 3, "det": 1, "slogdet": 1, "qr": 4, "eigh": 60, "eigvalsh": 40}
NAMES = frozenset(_OPERATIONS)


def has_kernel(op: Op, operands: Sequence[Spec]) -> bool:
    """Returns whether an op on operands of these specs has a kernel, though it is a library op."""
    return op.name in NAMES and all(max(spec.shape[-2:]) <= MOST_SIDE for spec in operands)


def is_of_library(op: Op, operands: Sequence[Spec]) -> bool:
    """Returns whether the array library computes an op on operands of these specs."""
    return op.category is Category.LIBRARY and not has_kernel(op, operands)


def library_ops(program: Program) -> list[str]:
    """Returns the names of the ops of a program that the array library computes, each once."""
    return [*dict.fromkeys([each.op.name for each in program.distinct if is_of_library(each.op, each.operands)])]


def others_of(op: Op, operands: Sequence[Shape], attributes: tuple[Any, ...]) -> int:
    """Returns the columns of the right sides of equations, or of Q in a QR decomposition; 0 for all other ops."""
    if op.name == "solve":
        return operands[1][-1]
    if op.name == "qr":
        rows, columns = operands[0][-2:]
        return rows if attributes[0] else min(rows, columns)
    return 0


def operations_of(name: str, rows: int, columns: int) -> int:
    """Returns about how many operations the op of this name takes for one matrix."""
    return _OPERATIONS[name] * rows * columns * min(rows, columns)
