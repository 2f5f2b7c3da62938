"""Finds the arrays of which each iteration of a loop writes a part that no other one writes, as in `y[i] = h`. Pure.

If nothing reads such an array within the loop, its parts may be written in any order. Then the array need not be copied
in each iteration: one copy before the first iteration is enough. An iteration may read the part that the one before has
written, as in `y[i + 1] = f(y[i])`, because that part is a carried value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import Graph, Operand
from fusewire_kernels.graph.views import Layout
from fusewire_kernels.plan.plan import Donation
from fusewire_protos.ops.shapes import Region
from fusewire_protos.ops.strided import Strided, only_start
from fusewire_protos.programs.program import Program


class UpdatedPart(NamedTuple):
    """The part of an updated array that an iteration writes."""

    update: Donation
    written: Operand

    @property
    def source(self) -> int:
        """Returns the value of the graph that the array is at first: the inputs are the first values."""
        return self.update.input

    def is_like(self, read: Operand) -> bool:
        """Returns whether a part of the array differs from the written one in nothing but where it begins."""
        return _form(read.layout) == _form(self.written.layout)


def _form(layout: Layout) -> tuple[object, ...]:
    axes = [(dim, stride) for dim, stride in zip(layout.shape, layout.strides, strict=True) if dim > 1]
    return axes, layout.offset, [move.stride for move in layout.moves]


def parts_of_updates(
    program: Program, graph: Graph, groups: list[Instance], updates: Sequence[Donation]
) -> list[UpdatedPart]:
    """Returns the parts of those of `updates` that may be copied ahead."""
    found = []
    for update in updates:
        changes = [*_changes(graph, graph.outputs[update.position])]
        if len(changes) != 1 or not _is_of_one_iteration(program, graph.values[changes[0]].origin):
            continue
        target = graph.values[changes[0]].target
        assert target is not None, "it is a store"
        part = UpdatedPart(update, target)
        if _may_be_copied_ahead(groups, part):
            found.append(part)
    return found


def without_copies(groups: list[Instance], parts: Sequence[UpdatedPart]) -> list[Instance]:
    """Returns the groups but those that copy an updated array."""
    return [each for each in groups if not any(_copies(each, part.written.value) for part in parts)]


def _copies(instance: Instance, value: int) -> bool:
    (operand, *others) = instance.written()
    return not others and operand.value == value and operand.layout.is_dense


def _may_be_copied_ahead(groups: list[Instance], part: UpdatedPart) -> bool:
    """Returns whether nothing but its copy and one change takes an updated array, or reads such parts of it."""
    value = part.written.value
    copies = [each for each in groups if _copies(each, value)]
    read = [operand for each in groups if not _copies(each, value) for operand in each.read()]
    takes_parts = all(part.is_like(operand) for operand in read if operand.value == part.source)
    return len(copies) == 1 and takes_parts and not any(operand.value == value for operand in read)


def _changes(graph: Graph, value: int) -> Iterator[int]:
    """Yields the stores that change elements of a value, once the whole is copied."""
    for number, each in enumerate(graph.values):
        if each.after and each.target is not None and each.target.value == value:
            yield number


def _is_of_one_iteration(program: Program, change: int) -> bool:
    """Returns whether a change in another iteration is of the very same elements, or of none of these.

    It is if the region has all elements along an axis, or one. A strided view has one element, or has only one start.
    """
    op = program.ops[change]
    shape = program.specs[op.operands[0]].shape
    if op.op.part is Strided:
        view = Strided(*op.attributes)
        return prod(view.shape) == 1 or only_start(shape, view) is not None
    region = Region(*op.attributes)
    return all(length in (1, shape[axis]) for axis, length in zip(region.axes, region.lengths, strict=True))
