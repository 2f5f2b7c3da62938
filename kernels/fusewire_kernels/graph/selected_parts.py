"""Reads joined arrays without joining them: at each point an index chooses the part that is read. Pure.

`roll(x, 1) + x` joins two slices of x. If the sum reads the slices where they are, it is one kernel, and not three.
That pays on a GPU, where a kernel costs more than the choice does. A processor copies the parts faster than it chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

from fusewire_kernels.graph import views
from fusewire_kernels.graph.graph import ASSEMBLY, LEAVES, Gathered, Operand, Value
from fusewire_kernels.graph.value_builder import ValueBuilder
from fusewire_kernels.graph.views import Layout
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Category
from fusewire_protos.ops.shapes import Shape, Spec
from fusewire_protos.programs.program import Program

_MOST_PARTS = 4


class Readers:
    """The ops that read the results of a program's ops, as far as live results depend on them."""

    def __init__(self, program: Program, needed: Sequence[bool]) -> None:
        self._program = program
        self._needed = needed

    def read_at_points(self, index: int) -> bool:
        """Returns whether only pointwise ops read the result of an op, perhaps as a view or joined to others.

        Else the result has to be a buffer anyway, or it is read several times, as by a softmax.
        """
        if index in self._live:
            return False
        return all(self._reads_at_points(reader) for reader in self._of.get(self._program.first_result + index, ()))

    def _reads_at_points(self, index: int) -> bool:
        op = self._program.ops[index].op
        if op.category is Category.VIEW or op.name == "slice":
            return self.read_at_points(index)
        return op.category is Category.POINTWISE or op.name == "concat"

    @cached_property
    def _live(self) -> frozenset[int]:
        return frozenset(self._program.live)

    @cached_property
    def _of(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for index, (op, is_needed) in enumerate(zip(self._program.ops, self._needed, strict=True)):
            for number in op.operands if is_needed else ():
                found.setdefault(number, []).append(index)
        return found


def may_be_selected(builder: ValueBuilder, parts: Sequence[Operand]) -> bool:
    """Returns whether there are few parts, and each is in memory or is a number.

    A part that is computed can be computed in its place among the others.
    """
    return len(parts) <= _MOST_PARTS and all(_is_at_hand(builder.values[part.value], part.layout) for part in parts)


def _is_at_hand(value: Value, layout: Layout) -> bool:
    return value.form in (*LEAVES, ASSEMBLY) or prod(layout.shape) < prod(value.shape)


def selected(builder: ValueBuilder, parts: Sequence[Operand], axis: int, spec: Spec) -> Operand:
    """Returns a value of `spec` that is at each point an element of one of the parts, which lie along an axis."""
    index = builder.index(spec.shape, axis)
    *others, last = [part for part in parts if part.layout.shape[axis]]
    end = spec.shape[axis] - last.layout.shape[axis]
    result = _element(builder, last, index, axis, end, spec)
    for part in reversed(others):
        is_before = _with_number(builder, "less", index, end, dtypes.bool_)
        end -= part.layout.shape[axis]
        choice = (is_before, _element(builder, part, index, axis, end, spec), result)
        result = builder.point("where", choice, spec.dtype, spec.dtype, spec.shape)
    return result


def _element(builder: ValueBuilder, part: Operand, index: Operand, axis: int, begin: int, spec: Spec) -> Operand:
    """Returns the elements of a part that begins at `begin`. Beyond its ends the first or the last is repeated."""
    layout = part.layout
    if builder.is_slot(part) or layout.shape[axis] == 1 or not layout.strides[axis]:
        return Operand(part.value, _repeated(layout, axis, spec.shape))
    position = _with_number(builder, "subtract", index, begin, dtypes.int64) if begin else index
    walked = Operand(part.value, _repeated(layout, axis, spec.shape))
    return builder.gather(walked, position, Gathered(layout.shape[axis], layout.strides[axis]))


def _repeated(layout: Layout, axis: int, shape: Shape) -> Layout:
    """Returns the layout of the first elements along an axis, repeated along this axis to `shape`."""
    first = (*layout.shape[:axis], 1, *layout.shape[axis + 1 :])
    strides = (*layout.strides[:axis], 0, *layout.strides[axis + 1 :])
    return views.broadcast_to(Layout(first, strides, layout.offset, layout.moves), shape)


def _with_number(builder: ValueBuilder, body: str, index: Operand, number: int, result: DType) -> Operand:
    shape = index.layout.shape
    fitted = builder.fit(builder.constant(number, dtypes.int64), dtypes.int64, shape)
    return builder.point(body, (index, fitted), dtypes.int64, result, shape)
