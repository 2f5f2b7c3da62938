"""Starts with which the part that an op takes lies inside its first operand."""

from __future__ import annotations

from math import prod

from fusewire_protos.ops.shapes import Region, Shape
from fusewire_protos.ops.strided import Strided, reach
from fusewire_protos.programs.program import Program, ProgramOp


def starts_between(program: Program, op: ProgramOp) -> list[tuple[int, int]]:
    """Returns the least and the most of each start of an op of a program. Of an empty part it names the start 0."""
    if not op.op.takes_starts:
        return []
    shape = program.specs[op.operands[0]].shape
    if op.op.part is Strided:
        return [_of_view(shape, Strided(*op.attributes))]
    region = Region(*op.attributes)
    return [
        _of_slice(shape[axis], length, step)
        for axis, length, step in zip(region.axes, region.lengths, region.steps, strict=True)
    ]


def _of_view(shape: Shape, part: Strided) -> tuple[int, int]:
    low, high = reach(part)
    return (0, 0) if 0 in part.shape else (-low, prod(shape) - 1 - high)


def _of_slice(dim: int, length: int, step: int) -> tuple[int, int]:
    extent = (length - 1) * step
    return (max(0, -extent), dim - 1 - max(0, extent)) if length else (0, 0)
