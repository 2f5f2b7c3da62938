"""Says which operands of a call are copied first, so that few kernels serve all shapes that broadcast. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from fusewire_protos.ops import dtypes, shapes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape

# Loops of a kernel, after neighbouring axes along which the same operands move are merged.
MOST_LOOPS = 2
MOST_LOOPS_OF_BATCHES = 2  # of a product
_MOST_RARE_LOOPS = 1
# Few programs compute in these dtypes, so they have fewer kernels.
_RARE = {dtypes.int8, dtypes.int16, dtypes.uint16, dtypes.uint32, dtypes.uint64}


def most_loops(operands: Sequence[DType]) -> int:
    """Returns in how many loops the operands of a pointwise op of these dtypes may broadcast."""
    return _MOST_RARE_LOOPS if _RARE.intersection(operands) else MOST_LOOPS


def repeated(operands: Sequence[Shape], most: int) -> list[bool]:
    """Returns which operands repeat along an axis and must be copied first, because they broadcast in too many loops.

    An operand of one element is never copied.
    """
    result = shapes.broadcast(*operands)
    if _loops(operands, result) <= most:
        return [False] * len(operands)
    return [shape != result and any(dim != 1 for dim in shape) for shape in operands]


def _loops(operands: Sequence[Shape], result: Shape) -> int:
    padded = [(1,) * (len(result) - len(shape)) + shape for shape in operands]
    moving = [tuple([shape[axis] != 1 for shape in padded]) for axis, dim in enumerate(result) if dim != 1]
    return len([*groupby(moving)])
