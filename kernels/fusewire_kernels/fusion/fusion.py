"""Describes the result of vertical fusion, which puts values of a graph into groups.

The result tells which values each group computes, which groups a group waits for, and why values are in different
groups.
"""

from __future__ import annotations

from typing import NamedTuple

from fusewire_kernels.fusion import placement as places
from fusewire_kernels.fusion.groups import Group, Member
from fusewire_kernels.fusion.placement import Placement
from fusewire_kernels.fusion.reasons import Reason
from fusewire_kernels.graph.graph import INDEX, POINTWISE, Graph, Operand, Value

INLINED_FORMS = (POINTWISE, INDEX)  # values of these forms may be computed again in each group that uses them


class Fusion(NamedTuple):
    """The groups of a graph, in an order in which they may run.

    `group_of[value]` is an index into `groups`. The index is None for leaves, assemblies and inlined values, because
    these belong to no group. An assembly is a value that several stores fill: `writers[assembly]` are these stores. An
    inlined value is computed again in each group that uses it. `is_stored[value]` tells whether the value needs a
    buffer, because another group reads the value or because the value is a live result. `waits_for[group]` are the
    indices of the groups that must end before the group begins. `reasons` says why a value is not in the group that
    computes one of its operands: by value, and index of the group.
    """

    graph: Graph
    groups: tuple[Group, ...]
    group_of: tuple[int | None, ...]
    writers: dict[int, list[int]]
    is_stored: tuple[bool, ...]
    waits_for: tuple[tuple[int, ...], ...]
    reasons: dict[tuple[int, int], Reason]


def placement_of_result(value: Value, placement: Placement) -> Placement:
    """Returns the placement of a value's result, given the placement of the points at which the value is computed.

    The two placements differ only for a reduction: the result has distance 0 along each reduced axis.
    """
    if not value.axes:
        return placement
    return tuple([0 if axis in value.axes else place for axis, place in enumerate(placement)])


def inlined_as(values: tuple[Value, ...], group: Group, operand: Operand, placement: Placement) -> Member | None:
    """Returns the member that computes an inlined operand in this group, or None if the group does not compute it."""
    value = values[operand.value]
    if not group.inlined or value.form not in INLINED_FORMS:
        return None
    place = places.placement_of_source(operand.layout, value.shape, placement)
    member = None if place is None else Member(operand.value, place)
    return member if member in group.inlined else None
