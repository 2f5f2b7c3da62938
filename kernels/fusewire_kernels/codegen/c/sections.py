"""Cuts a long pointwise body into sections, each with an innermost loop of its own. Pure.

A body is the list of values that a kernel computes at each point. The compiler makes SIMD code of an innermost loop,
and this code computes a vector of points at a time. If a long body is in one loop, each vector passes through one long
chain of dependent operations. The chain is longer than a processor looks ahead, so the processor waits instead of
working on the next vector. A section is so short that the processor works on several vectors at once.

The loops of the sections run one after another over a block of points. If a later section needs a value, the value is
kept in an array with one element for each point of the block. The arrays fit the first-level cache.

Each section reads the inputs and positions that it uses, even if an earlier section has read them. All stores are in
the last section, because an output may lie in the memory of an input that any section reads.
"""

from __future__ import annotations

from typing import NamedTuple

from fusewire_kernels.codegen.arrays import Arrays
from fusewire_kernels.codegen.statements import AnalysedKernel

_SHORT_WEIGHT = 48  # the greatest weight of a body that stays whole
_MOST_WEIGHT = 32  # the greatest weight of a section, unless a single node weighs more


class Held(NamedTuple):
    """A value, and the number of the array that keeps it."""

    value: int
    array: int


class Section(NamedTuple):
    """One loop over a block of points.

    At each point, the loop first reads the values `taken` from arrays. Then it reads or computes the values `made`, in
    order. Then it writes the values `put` to arrays, because later sections need these values.
    """

    taken: tuple[Held, ...]
    made: tuple[int, ...]
    put: tuple[Held, ...]


class Sections(NamedTuple):
    """The sections of a body's innermost loop, and the element type of each array."""

    sections: tuple[Section, ...]
    arrays: tuple[str, ...]


def sections_of(body: AnalysedKernel) -> Sections | None:
    """Cuts a pointwise body into sections, in the order of its nodes. Returns None if it is short or has no loop."""
    weights = {value: body.weight(value) for value in body.all_needed if _is_computed(body, value)}
    if body.dims == 0 or sum(weights.values()) <= _SHORT_WEIGHT:
        return None
    return _connected(body, _cut(weights))


def _is_innermost(body: AnalysedKernel, value: int) -> bool:
    return body.levels[value] == body.dims


def _is_computed(body: AnalysedKernel, value: int) -> bool:
    """Returns whether the innermost loop computes the value; inputs and positions are only read."""
    node = body.node(value)
    return _is_innermost(body, value) and node is not None and node.op != "index"


def _cut(weights: dict[int, int]) -> list[list[int]]:
    """Groups neighbouring values. A group has at most the weight `_MOST_WEIGHT`, or it is a single heavier value."""
    groups: list[list[int]] = []
    room = 0
    for value, weight_of_value in weights.items():
        if weight_of_value > room:
            groups.append([])
            room = _MOST_WEIGHT
        groups[-1].append(value)
        room -= weight_of_value
    return groups


def _connected(body: AnalysedKernel, groups: list[list[int]]) -> Sections:
    """Makes a section of each group, with arrays for the values that one group computes and a later group uses."""
    uses = [_used(body, group) for group in groups]
    uses[-1] |= {value for value in body.stored if _is_innermost(body, value)}
    last_use = {value: number for number, used in enumerate(uses) for value in used}
    arrays = Arrays()
    sections = []
    for number, (group, used) in enumerate(zip(groups, uses, strict=True)):
        taken = tuple([Held(value, arrays.array_of[value]) for value in sorted(used) if value in arrays.array_of])
        arrays.give_back([held.value for held in taken if last_use[held.value] == number])
        later = [value for value in group if last_use.get(value, number) > number]
        put = [Held(value, arrays.take(value, body.dtype(value))) for value in later]
        read = [value for value in sorted(used) if not _is_computed(body, value)]
        sections.append(Section(taken, (*read, *group), tuple(put)))
    return Sections(tuple(sections), tuple(arrays.types))


def _used(body: AnalysedKernel, group: list[int]) -> set[int]:
    """Returns the operands of a group that are known only in the innermost loop."""
    nodes = [body.node(value) for value in group]
    return {operand for node in nodes if node for operand in node.operands if _is_innermost(body, operand)}
