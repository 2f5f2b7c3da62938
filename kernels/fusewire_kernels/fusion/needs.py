"""Checks whether a group can take further values: common loops, one walk, and the limits of a kernel.

A group has at most one walk along which it reduces, and every array of the group must move by one stride along that
walk. The axes of a new member and those of the group must have common loops. The kernel must stay within limits.
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

MOST_NODES = 200  # of a kernel: longer kernels gain little and compile slowly
MOST_ARGUMENTS = 30  # arrays of a kernel, read or stored
MOST_REDUCTIONS = 8  # of a kernel: partial results of all its reductions are held at the same time
LONG_WALK, FEW_WALKS = 1 << 16, 16  # fewer walks than this, each longer than this, use a small part of a device


class Needs(NamedTuple):
    """Requirements of values on the group that they join; the fields mean what they mean in `Group`.

    `members`, `exposed` and `reductions` are counts.
    """

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
    """The store that the value may need, if its elements lie in another order than the points of the space."""
    if placement == views.dense_strides(value.shape) or value.target is not None or value.form is REDUCTION:
        return frozenset()
    return frozenset((Access(Operand(0, views.dense(value.shape)), placement),))


def positions_of(value: Value, placement: Placement) -> frozenset[Walk]:
    """The axis whose positions an INDEX value gives; empty for any other value."""
    return frozenset((Walk(value.shape[0], placement[0]),)) if value.form is INDEX else frozenset()


def misfit(group: Group, needs: Needs) -> str | None:
    """The reason why a group cannot meet these needs, or None if it can."""
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
        return "the axes of the two have no common loops"
    if any(_is_part(axis, needs.walk) for axis in uncut):
        return "it needs a position inside the reduced axes"
    if group.walk is None:
        return _uneven(needs.walk, needs.accesses, needs.turned, group.accesses, group.turned)
    return _uneven(needs.walk, needs.accesses, needs.turned)


def _uneven(walk: Walk | None, *accesses: AbstractSet[Access]) -> str | None:
    """The reason if some array does not move by one stride along the walk, or None."""
    if walk is None:
        return None
    for (_, layout), placement in chain(*accesses):
        if not places.walks_evenly(layout.shape, placement, layout.strides, walk):
            return "the elements of an array are not evenly apart along the reduced axes"
    return None


def is_crowded(walk: Walk | None, elements: int) -> bool:
    """Whether a kernel with these walks would use a small part of the device, because one worker does one walk.

    Pointwise work should not be slowed down by being in such a kernel.
    """
    return walk is not None and walk.extent > LONG_WALK and elements < FEW_WALKS * walk.extent


def _is_part(axis: Walk, walk: Walk | None) -> bool:
    is_inside = walk is not None and walk.stride <= axis.stride < walk.stride * walk.extent
    return is_inside and axis != walk


def _all_breaks(group: Group, needs: Needs) -> frozenset[int]:
    walk = needs.walk
    of_walk = frozenset() if walk is None or walk.extent == 1 else frozenset((walk.stride, walk.stride * walk.extent))
    return group.breaks | needs.breaks | of_walk


def add_needs(group: Group, needs: Needs) -> None:
    """Changes the group so that it meets the needs of values that join it; the caller updates `exposed`."""
    group.breaks = _all_breaks(group, needs)
    group.walk = needs.walk
    group.uncut |= needs.uncut
    group.accesses |= needs.accesses
    group.turned |= needs.turned
    group.inlined |= needs.inlined
    group.reductions += needs.reductions


def needs_of(group: Group, other: Group) -> Needs:
    """The needs of all members of `other` together, were they to join `group`."""
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
