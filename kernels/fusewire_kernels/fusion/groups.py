"""Records the groups that fusion forms: their values, and the groups that each of them waits for.

A group as a whole waits for another group as a whole, so two groups must never wait for each other. To find that out at
once each group keeps the numbers of all groups it waits for, directly or indirectly, as the bits of one integer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fusewire_kernels.fusion.placement import Placement, Walk
from fusewire_kernels.graph.graph import Operand


class Member(NamedTuple):
    """A value of a group, computed at the points of `placement`."""

    value: int
    placement: Placement


class Access(NamedTuple):
    """An operand that a group reads from memory or writes to memory, at the points of `placement`."""

    operand: Operand
    placement: Placement


class Group:
    """Values that one kernel computes.

    `members` are in order of computation. Fusion consults the other attributes before it lets a value join.
    """

    is_product: bool = False
    walk: Walk | None = None
    breaks: frozenset[int] = frozenset()
    uncut: frozenset[Walk] = frozenset()  # axes whose positions an INDEX value gives: each must be one loop
    turned: frozenset[Access] = frozenset()  # stores of members whose order differs from that of the space
    inlined: frozenset[Member] = frozenset()
    exposed: int = 0  # how many members other groups may read: each of these may need a store
    reductions: int = 0
    has_waiting: bool = False  # whether another group waits for this one
    ancestors: int = 0  # bits: the groups in `waits_for` and all groups that these wait for

    def __init__(self, number: int, elements: int) -> None:
        self.number = number
        self.elements = elements
        self.members: list[Member] = []
        self.accesses: set[Access] = set()
        self.waits_for: set[int] = set()  # numbers of the groups that must end before this one begins


class Groups:
    """The groups of a graph with `values` values, by number.

    `of[value]` is the group that computes the value, or None. `root[number]` is the group's own number, or the number
    of the group into which it was merged.
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
        """Makes a group wait for others: it begins after they have ended."""
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
        """Merges `other` into `group`: its members, the groups it waits for, and the groups that wait for it."""
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
        """The groups that were not merged into others, in an order in which they may run."""
        alive = [group for group in self._groups if self.root[group.number] == group.number and group.members]
        # A group has more ancestors than any group it waits for, so this order puts it behind them.
        alive.sort(key=lambda group: (group.ancestors.bit_count(), group.members[0].value))
        return alive
