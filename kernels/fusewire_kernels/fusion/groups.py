"""Records the groups that fusion forms: the values of each group, and the groups that each group waits for.

A group begins after all groups that it waits for have ended, so two groups must never wait for each other. Each group
keeps the numbers of all groups that it waits for, directly or indirectly, as the bits of one integer. So fusion finds
out in one step whether a group waits for another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fusewire_kernels.fusion.placement import Placement, Walk
from fusewire_kernels.graph.graph import Operand


class Member(NamedTuple):
    """A value of a group. The group computes the value at the points of `placement`."""

    value: int
    placement: Placement


class Access(NamedTuple):
    """An operand that a group reads from memory or writes to memory, at the points of `placement`."""

    operand: Operand
    placement: Placement


class Group:
    """Values that one kernel computes.

    `members` are in order of computation. A group computes at most one product, and then only pointwise values at the
    points of the product's result: its *epilogue*. Fusion checks the other attributes before it adds a value to the
    group. The module `placement` explains the points, breaks and walk of a group. In the notes, an INDEX value is a
    value whose elements are positions along an axis.
    """

    product_breaks: frozenset[int] | None = None  # the breaks of the product that the group computes, if it does
    walk: Walk | None = None
    breaks: frozenset[int] = frozenset()
    uncut: frozenset[Walk] = frozenset()  # the axes of INDEX values: each axis must be one loop
    turned: frozenset[Access] = frozenset()  # stores that members may need, in another order than the points
    inlined: frozenset[Member] = frozenset()
    exposed: int = 0  # how many members other groups may read and may therefore need a store
    reductions: int = 0
    is_whole: bool = False  # whether the group computes lines or small matrices, and nothing else
    has_waiting: bool = False  # whether another group waits for this group
    ancestors: int = 0  # bits: the groups that this group waits for, directly or indirectly

    def __init__(self, number: int, elements: int) -> None:
        self.number = number
        self.elements = elements
        self.members: list[Member] = []
        self.accesses: set[Access] = set()
        self.waits_for: set[int] = set()  # numbers of the groups that must end before this group begins

    @property
    def is_product(self) -> bool:
        return self.product_breaks is not None

    @property
    def reads_buffers(self) -> bool:
        """Whether the group computes a product, lines or small matrices, whose operands are buffers."""
        return self.is_product or self.is_whole


class Groups:
    """The groups of a graph, by number. `values` is the number of the graph's values.

    `of[value]` is the group that computes the value, or None. `root[number]` is the number of the group into which
    group `number` was merged, or `number` itself if the group was not merged.
    """

    def __init__(self, values: int) -> None:
        self.of: list[Group | None] = [None] * values
        self.root: list[int] = []
        self._groups: list[Group] = []

    def __getitem__(self, number: int) -> Group:
        return self._groups[number]

    def new(self, elements: int) -> Group:
        group = Group(len(self._groups), elements)
        self._groups.append(group)
        self.root.append(group.number)
        return group

    def add(self, group: Group, member: Member) -> None:
        group.members.append(member)
        self.of[member[0]] = group

    def wait(self, group: Group, others: Iterable[int]) -> None:
        """Makes `group` wait for the groups with the numbers `others`. A group never waits for itself."""
        added = 0
        for number in others:
            if number != group.number:
                other = self._groups[number]
                group.waits_for.add(number)
                other.has_waiting = True
                added |= other.ancestors | 1 << number
        if added | group.ancestors == group.ancestors:
            return
        group.ancestors |= added
        if group.has_waiting:
            for third in self._groups:
                if third.ancestors >> group.number & 1:
                    third.ancestors |= added

    def merge(self, group: Group, other: Group) -> None:
        """Merges `other` into `group`.

        `group` gets the members of `other` and waits for the groups that `other` waits for. All groups that waited for
        `other` wait for `group`.
        """
        group.members = sorted(group.members + other.members)
        for member in other.members:
            self.of[member.value] = group
        self.root = [group.number if root == other.number else root for root in self.root]
        group.waits_for |= other.waits_for
        group.has_waiting |= other.has_waiting
        both = 1 << group.number | 1 << other.number
        group.ancestors |= other.ancestors
        for third in self._groups if group.has_waiting else ():
            if third.ancestors & both:
                third.ancestors |= both | group.ancestors

    def in_order(self) -> list[Group]:
        """Returns the groups that were not merged into others, in an order in which they may run."""
        alive = [group for group in self._groups if self.root[group.number] == group.number and group.members]
        # A group has more ancestors than each group that it waits for, so this order puts the group behind them.
        alive.sort(key=lambda group: (group.ancestors.bit_count(), group.members[0].value))
        return alive
