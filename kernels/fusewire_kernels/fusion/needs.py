"""What members ask of the group they join, and whether a group can give it.

A group has at most one walk along which it reduces, along which every array must move evenly; its axes and theirs must
have common loops; and its kernel must stay within limits.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import chain
from typing import NamedTuple

from fusewire_kernels.fusion import placement as places
from fusewire_kernels.fusion.groups import Access, Group, Member
from fusewire_kernels.fusion.placement import Placement, Walk
from fusewire_kernels.graph import views
from fusewire_kernels.graph.graph import INDEX, REDUCTION, Operand, Value

MOST_NODES = 200  # of a kernel: longer ones gain little and compile slowly
MOST_ARGUMENTS = 30  # arrays of a kernel, read or stored
MOST_REDUCTIONS = 8  # of a kernel: each keeps partial results beside those of the others
LONG_WALK, FEW_WALKS = 1 << 16, 16  # longer and fewer walks than this use a small part of a device


class Needs(NamedTuple):
    """What members ask of the group they join."""

    walk: Walk | None
    breaks: frozenset[int]
    uncut: AbstractSet[Walk]
    accesses: AbstractSet[Access]
    turned: AbstractSet[Access]
    inlined: AbstractSet[Member]
    members: int
    exposed: int
    reductions: int


def turned_of(value: Value, placement: Placement) -> frozenset[Access]:
    """A store of the value, should it be needed, if its points are not in the order of the space."""
    if placement == views.dense_strides(value.shape) or value.target is not None or value.form is REDUCTION:
        return frozenset()
    return frozenset((Access(Operand(0, views.dense(value.shape)), placement),))


def positions_of(value: Value, placement: Placement) -> frozenset[Walk]:
    """The axis whose position a value asks for, if it does."""
    return frozenset((Walk(value.shape[0], placement[0]),)) if value.form is INDEX else frozenset()


def misfit(group: Group, needs: Needs) -> str | None:
    """Why a group cannot meet these needs, or None."""
    if len(group.members) + len(group.inlined) + needs.members + len(needs.inlined) > MOST_NODES:
        return f"a kernel has at most {MOST_NODES} nodes"
    arrays = len(group.accesses) + group.exposed + len(needs.accesses) + needs.exposed
    if arrays > MOST_ARGUMENTS:
        return f"a kernel has at most {MOST_ARGUMENTS} arrays"
    if group.reductions + needs.reductions > MOST_REDUCTIONS:
        return f"a kernel has at most {MOST_REDUCTIONS} reductions"
    breaks = _all_breaks(group, needs)
    uncut = group.uncut | needs.uncut
    if not places.is_chain(breaks) or not all(places.is_uncut(axis, breaks) for axis in uncut):
        return "its axes and those of the group have no common loops"
    if any(_is_part(axis, needs.walk) for axis in uncut):
        return "it asks for a position inside what is reduced"
    if group.walk is None:
        return _uneven(needs.walk, needs.accesses, needs.turned, group.accesses, group.turned)
    return _uneven(needs.walk, needs.accesses, needs.turned)


def _uneven(walk: Walk | None, *accesses: AbstractSet[Access]) -> str | None:
    """Why some array is no single strided dimension along the walk, or None."""
    if walk is None:
        return None
    for (_, layout), placement in chain(*accesses):
        if not places.walks_evenly(layout.shape, placement, layout.strides, walk):
            return "an array is not evenly apart along what is reduced"
    return None


def is_crowded(walk: Walk | None, elements: int) -> bool:
    """Whether a kernel that reduces so would make work at every point slow: a walk is one worker's."""
    return walk is not None and walk.extent > LONG_WALK and elements < FEW_WALKS * walk.extent


def _is_part(axis: Walk, walk: Walk | None) -> bool:
    is_inside = walk is not None and walk.stride <= axis.stride < walk.stride * walk.extent
    return is_inside and axis != walk


def _all_breaks(group: Group, needs: Needs) -> frozenset[int]:
    walk = needs.walk
    of_walk = frozenset() if walk is None or walk.extent == 1 else frozenset((walk.stride, walk.stride * walk.extent))
    return group.breaks | needs.breaks | of_walk


def add_needs(group: Group, needs: Needs) -> None:
    group.breaks = _all_breaks(group, needs)
    group.walk = needs.walk
    group.uncut |= needs.uncut
    group.accesses |= needs.accesses
    group.turned |= needs.turned
    group.inlined |= needs.inlined
    group.reductions += needs.reductions


def needs_of(group: Group, other: Group) -> Needs:
    """What all members of another group together need."""
    walk = group.walk if other.walk is None else other.walk
    return Needs(
        walk,
        other.breaks,
        other.uncut,
        other.accesses,
        other.turned,
        other.inlined,
        len(other.members),
        other.exposed,
        other.reductions,
    )
