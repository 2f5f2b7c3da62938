"""What vertical fusion results in: the groups of a graph, what waits for what, and why values are apart."""

from __future__ import annotations

from typing import NamedTuple

from fusewire_kernels.fusion import placement as places
from fusewire_kernels.fusion.groups import Group, Member
from fusewire_kernels.fusion.placement import Placement
from fusewire_kernels.graph.graph import INDEX, POINTWISE, Graph, Operand, Value

INLINED_FORMS = (POINTWISE, INDEX)  # of values that may be computed again in each group that uses them


class Refusal(NamedTuple):
    """Why a value is not in the group that computes one of its operands."""

    value: int
    producer: int
    reason: str


class Fusion(NamedTuple):
    """The groups of a graph in an order in which they may run.

    `group_of[value]` is an index into `groups`, or None: leaves, assemblies and inlined values belong to no group.
    `writers[assembly]` are the stores into that assembly. `is_stored[value]`: the value needs a buffer, because another
    group reads it or because it is live. `waits_for[group]` are indices of the groups that must end before it begins.
    """

    graph: Graph
    groups: tuple[Group, ...]
    group_of: tuple[int | None, ...]
    writers: dict[int, list[int]]
    is_stored: tuple[bool, ...]
    waits_for: tuple[tuple[int, ...], ...]
    refusals: tuple[Refusal, ...]


def placement_of_result(value: Value, placement: Placement) -> Placement:
    """The placement of a value's result, given that of its work; they differ in the axes that the value reduces."""
    if not value.axes:
        return placement
    return tuple([0 if axis in value.axes else place for axis, place in enumerate(placement)])


def inlined_as(values: tuple[Value, ...], group: Group, operand: Operand, placement: Placement) -> Member | None:
    """The member that computes an inlined operand in this group, or None if the group does not compute it."""
    value = values[operand.value]
    if not group.inlined or value.form not in INLINED_FORMS:
        return None
    place = places.behind_view(operand.layout, value.shape, placement)
    member = None if place is None else Member(operand.value, place)
    return member if member in group.inlined else None
