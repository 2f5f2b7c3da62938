"""Groups while fusion forms them: which value is in which, and which must end before which begins.

Groups wait for one another as a whole, so what must not happen is a circle. Each group keeps the set of groups it waits
for, directly or not, as the bits of an integer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from fusewire_kernels.graph import Operand
from fusewire_kernels.placement import Placement, Walk


class Member(NamedTuple):
    """A value of a group; `placement` is that of the points at which its work is done."""

    value: int
    placement: Placement


class Access(NamedTuple):
    """An operand that a group reads from memory, or writes, at the points of `placement`."""

    operand: Operand
    placement: Placement


@dataclass(eq=False, slots=True)
class Group:
    """Values computed in one kernel. Members are in order of computation; the rest is what joining asks for."""

    number: int
    elements: int
    is_product: bool = False
    walk: Walk | None = None
    members: list[Member] = field(default_factory=list)
    breaks: frozenset[int] = frozenset()
    uncut: frozenset[Walk] = frozenset()  # axes whose position is asked for: each must be one loop
    accesses: set[Access] = field(default_factory=set)
    turned: frozenset[Access] = frozenset()  # to members that lie in another order than the space
    inlined: frozenset[Member] = frozenset()
    exposed: set[int] = field(default_factory=set)  # members that others may read, so that each may be stored
    reductions: int = 0
    waits_for: set[int] = field(default_factory=set)  # groups that must end before it begins
    has_waiting: bool = False  # whether a group waits for it
    ancestors: int = 0  # the bits of those and of all that these wait for


class Groups:
    """The groups of a graph of so many values, by number. A group that was merged into another one is that one."""

    def __init__(self, values: int) -> None:
        self._groups: list[Group] = []
        self._root: list[int] = []  # of each number, the group it was merged into
        self._number_of: list[int | None] = [None] * values

    def __getitem__(self, number: int) -> Group:
        return self._groups[number]

    def new(self, elements: int) -> Group:
        group = Group(len(self._groups), elements)
        self._groups.append(group)
        self._root.append(group.number)
        return group

    def of(self, value: int) -> Group | None:
        """The group of a value, None if it has none."""
        number = self._number_of[value]
        if number is None:
            return None
        if self._root[number] != number:
            number = self._number_of[value] = self.top(number)
        return self._groups[number]

    def top(self, number: int) -> int:
        """The number of the group that a group now is."""
        while self._root[number] != number:
            number = self._root[number]
        return number

    def add(self, group: Group, member: Member) -> None:
        group.members.append(member)
        self._number_of[member.value] = group.number

    def wait(self, group: Group, others: Iterable[int]) -> None:
        """Lets a group begin only after others have ended."""
        added = 0
        for other in others:
            if other != group.number:
                group.waits_for.add(other)
                self._groups[other].has_waiting = True
                added |= self._groups[other].ancestors | 1 << other
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
        self._root[other.number] = group.number
        group.waits_for |= other.waits_for
        group.has_waiting |= other.has_waiting
        both = 1 << group.number | 1 << other.number
        group.ancestors |= other.ancestors
        for third in self._groups if group.has_waiting else ():
            if third.ancestors & both:
                third.ancestors |= both | group.ancestors

    def in_order(self) -> list[Group]:
        """Those that were not merged into others, in an order in which they may run."""
        alive = [group for group in self._groups if self._root[group.number] == group.number and group.members]
        # Whatever waits has more ancestors than what it waits for.
        alive.sort(key=lambda group: (group.ancestors.bit_count(), group.members[0].value))
        return alive
