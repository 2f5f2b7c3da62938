"""Finds the arrays of which each iteration of a loop writes a part that no other one writes, as in `y[i] = h`. Pure.

If nothing reads such an array within the loop, its parts may be written in any order. Then the array need not be copied
in each iteration: one copy before the first iteration is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import Graph
from fusewire_kernels.plan.plan import Donation
from fusewire_protos.ops import catalogue
from fusewire_protos.programs.program import Program


class WithoutCopies(NamedTuple):
    """The groups of a body without those that copy an array of `updates`, and the values which these groups wrote."""

    groups: list[Instance]
    updates: tuple[Donation, ...]
    values: frozenset[int]


def without_copies(
    program: Program, graph: Graph, groups: list[Instance], updates: Sequence[Donation]
) -> WithoutCopies:
    """Returns what is left of the groups if all of `updates` that may be copied ahead are."""
    written = {update: graph.outputs[update.position] for update in updates}
    found = tuple([update for update, value in written.items() if _may_be_copied_ahead(program, graph, groups, value)])
    values = frozenset([written[update] for update in found])
    return WithoutCopies([each for each in groups if not _copies(each, values)], found, values)


def _copies(instance: Instance, values: frozenset[int]) -> bool:
    (operand, *others) = instance.written()
    return not others and operand.value in values and operand.layout.is_dense


def _may_be_copied_ahead(program: Program, graph: Graph, groups: list[Instance], value: int) -> bool:
    """Returns whether only the copy of an updated value reads the input, and only one store changes the value."""
    copies = [each for each in groups if _copies(each, frozenset([value]))]
    changes = [*_changes(graph, value)]
    if len(copies) != 1 or len(changes) != 1:
        return False
    source = copies[0].operands[0].value
    read = [operand.value for each in groups for operand in each.read()]
    return read.count(source) == 1 and value not in read and _is_of_one_iteration(program, changes[0])


def _changes(graph: Graph, value: int) -> Iterator[int]:
    """Yields the ops that change elements of a value, once the whole is copied."""
    for each in graph.values:
        if each.after and each.target is not None and each.target.value == value:
            yield each.origin


def _is_of_one_iteration(program: Program, change: int) -> bool:
    """Returns whether a change in another iteration is of the very same elements, or of none of these.

    It is if the region has all elements along an axis, or one.
    """
    op = program.ops[change]
    region, shape = catalogue.region_of(op.attributes), program.specs[op.operands[0]].shape
    return all(length in (1, shape[axis]) for axis, length in zip(region.axes, region.lengths, strict=True))
