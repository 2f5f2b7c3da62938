"""Groups while fusion forms them: which value is in which, and which must end before which begins.

Groups wait for one another as a whole, so what must not happen is a circle. Each group keeps the set of groups it waits
for, directly or not, as the bits of an integer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fusewire_kernels.fusion.placement import Placement, Walk
from fusewire_kernels.graph.graph import Operand


class Member(NamedTuple):
    """A value of a group; `placement` is that of the points at which its work is done."""

    value: int
    placement: Placement


class Access(NamedTuple):
    """An operand that a group reads from memory, or writes, at the points of `placement`."""

    operand: Operand
    placement: Placement


class Group:
    """Values computed in one kernel. Members are in order of computation; the rest is what joining asks for."""

    is_product: bool = False
    walk: Walk | None = None
    breaks: frozenset[int] = frozenset()
    uncut: frozenset[Walk] = frozenset()  # axes whose position is asked for: each must be one loop
    turned: frozenset[Access] = frozenset()  # to members that lie in another order than the space
    inlined: frozenset[Member] = frozenset()
    exposed: int = 0  # members that others may read, so that each may be stored
    reductions: int = 0
    has_waiting: bool = False  # whether a group waits for it
    ancestors: int = 0  # the bits of the groups that must end before it begins, and of all that these wait for

    def __init__(self, number: int, elements: int) -> None:
        self.number = number
        self.elements = elements
        self.members: list[Member] = []
        self.accesses: set[Access] = set()
        self.waits_for: set[int] = set()  # groups that must end before it begins


class Groups:
    """The groups of a graph of so many values, by number.

    `of[value]`: the group that computes a value, None if none does. `root[number]`: the number of the group that a
    group now is, another one's if it was merged into that.
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
        """Lets a group begin only after others have ended."""
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
        """Makes the members of another group, and what waits for it or for which it waits, those of a group."""
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
        """Those that were not merged into others, in an order in which they may run."""
        alive = [group for group in self._groups if self.root[group.number] == group.number and group.members]
        # Whatever waits has more ancestors than what it waits for.
        alive.sort(key=lambda group: (group.ancestors.bit_count(), group.members[0].value))
        return alive
