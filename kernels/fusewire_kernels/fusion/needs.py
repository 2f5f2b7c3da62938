"""Checks whether a group can take further values.

There are three conditions. The group has at most one walk (the points that a reduction reduces to one), and every array
of the group must move by one stride along the walk. The axes of a new member and the axes of the group must have common
loops. The kernel must stay within its limits.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import chain, pairwise
from typing import NamedTuple

from fusewire_kernels.fusion import placement as places
from fusewire_kernels.fusion.groups import Access, Group, Member
from fusewire_kernels.fusion.placement import Placement, Walk
from fusewire_kernels.fusion.reasons import (
    MOST_ARGUMENTS,
    MOST_BESIDE_PRODUCT,
    MOST_NODES,
    MOST_REDUCTIONS,
    Reason,
)
from fusewire_kernels.graph import views
from fusewire_kernels.graph.graph import INDEX, REDUCTION, Operand, Value


class Needs(NamedTuple):
    """The requirements of values on the group that they join.

    Each field has the same meaning as in `Group`, but `members` is a count.
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
    """Returns the store that the value may need, if its elements lie in another order than the points of the space.

    Otherwise, and for a value that is a store or a reduction, the result is empty.
    """
    if placement == views.dense_strides(value.shape) or value.target is not None or value.form is REDUCTION:
        return frozenset()
    return frozenset((Access(Operand(0, views.dense(value.shape)), placement),))


def positions_of(value: Value, placement: Placement) -> frozenset[Walk]:
    """Returns the axis of an INDEX value, whose elements are the positions along the axis. Empty for other values."""
    return frozenset((Walk(value.shape[0], placement[0]),)) if value.form is INDEX else frozenset()


def misfit(group: Group, needs: Needs) -> Reason | None:
    """Returns the reason why a group cannot meet these needs, or None if the group can meet them."""
    if len(group.members) + len(group.inlined) + needs.members + len(needs.inlined) > MOST_NODES:
        return Reason.NODES
    reason = _misfit_of_product(group, needs)
    if reason is not None:
        return reason
    arrays = len(group.accesses) + group.exposed + len(needs.accesses) + needs.exposed
    if arrays > MOST_ARGUMENTS:
        return Reason.ARRAYS
    if group.reductions + needs.reductions > MOST_REDUCTIONS:
        return Reason.REDUCTIONS
    breaks = _all_breaks(group, needs)
    uncut = group.uncut | needs.uncut
    if not places.is_chain(breaks) or not all(places.is_uncut(axis, breaks) for axis in uncut):
        return Reason.AXES
    if any(_is_part(axis, needs.walk) for axis in uncut):
        return Reason.INSIDE_REDUCED
    if group.walk is None:
        return _uneven(needs.walk, needs.accesses, needs.turned, group.accesses, group.turned)
    return _uneven(needs.walk, needs.accesses, needs.turned)


def _misfit_of_product(group: Group, needs: Needs) -> Reason | None:
    """Returns the reason why values cannot join a group because it computes a product, or None."""
    if group.product_breaks is None:
        return None
    if needs.walk is not None or needs.uncut:
        return Reason.BESIDE_PRODUCT
    if not needs.breaks <= group.product_breaks and not _fits_loops(group.product_breaks, needs):
        return Reason.PRODUCT_LOOPS
    if len(group.members) + len(group.inlined) + needs.members + len(needs.inlined) > MOST_BESIDE_PRODUCT + 1:
        return Reason.LARGE_EPILOGUE
    return None


def _fits_loops(product_breaks: frozenset[int], needs: Needs) -> bool:
    """Returns whether every array of values that have more axes than a product moves by one stride along its loops."""
    if not places.is_chain(product_breaks | needs.breaks):
        return False
    loops = [Walk(high // low, low) for low, high in pairwise(sorted(product_breaks))]
    arrays = needs.accesses | needs.turned
    return all(_uneven(loop, arrays) is None for loop in loops)


def _uneven(walk: Walk | None, *accesses: AbstractSet[Access]) -> Reason | None:
    """Returns None if every array moves by one stride along the walk, or else the reason why values cannot join."""
    if walk is None:
        return None
    for (_, layout), placement in chain(*accesses):
        if not places.walks_evenly(layout.shape, placement, layout.strides, walk):
            return Reason.UNEVEN_ARRAY
    return None


def _is_part(axis: Walk, walk: Walk | None) -> bool:
    is_inside = walk is not None and walk.stride <= axis.stride < walk.stride * walk.extent
    return is_inside and axis != walk


def _all_breaks(group: Group, needs: Needs) -> frozenset[int]:
    walk = needs.walk
    of_walk = frozenset() if walk is None or walk.extent == 1 else frozenset((walk.stride, walk.stride * walk.extent))
    return group.breaks | needs.breaks | of_walk


def add_needs(group: Group, needs: Needs) -> None:
    """Changes a group so that it meets the needs of values that join. The caller updates `exposed`."""
    group.breaks = _all_breaks(group, needs)
    group.walk = needs.walk
    group.uncut |= needs.uncut
    group.accesses |= needs.accesses
    group.turned |= needs.turned
    group.inlined |= needs.inlined
    group.reductions += needs.reductions


def needs_of(group: Group, other: Group) -> Needs:
    """Returns the needs that all members of `other` together would have in `group`."""
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
