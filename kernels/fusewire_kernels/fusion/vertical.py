"""Fuses vertically: decides which values are computed in one kernel.

Values are added to groups greedily, in program order. A value joins the group of one of its operands under three
conditions: the value can use that operand at the same point of the group's space, everything else that the value needs
is done before the group begins, and the space still has loops (see `placement`). If the operands of a value come from
several groups that can be merged, these groups are merged. A value whose operands are all in memory joins a group that
reads one of them at the same points, so that the operand is read once for both. A value that can join no group begins a
new group, and reads its operands from memory.

A group computes at most one product. Only pointwise values at the points of its result may join it: the kernel computes
them when a block of the product is finished. A group reduces along at most one walk, so its kernel has one inner
dimension. Values before a reduction and after the reduction may be in one group. A value that is made only of scalars
and positions is *inlined*: each group that uses the value computes it again, because that costs less than a read from
memory, unless the computation is long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple

from fusewire_kernels.fusion import placement as places
from fusewire_kernels.fusion.fusion import INLINED_FORMS, Fusion, placement_of_result
from fusewire_kernels.fusion.groups import Access, Group, Groups, Member
from fusewire_kernels.fusion.needs import (
    Needs,
    add_needs,
    misfit,
    needs_of,
    positions_of,
    turned_of,
)
from fusewire_kernels.fusion.placement import Partial, Placement
from fusewire_kernels.fusion.reasons import Reason
from fusewire_kernels.fusion.recomputation import MOST_RECOMPUTED, is_heavy, recomputed_weight
from fusewire_kernels.graph import views
from fusewire_kernels.graph.graph import (
    ASSEMBLY,
    GATHER,
    LEAVES,
    POINTWISE,
    PRODUCT,
    REDUCTION,
    SLOTS,
    STORE,
    WHOLE,
    Graph,
    Operand,
    Value,
)
from fusewire_kernels.graph.views import Layout
from fusewire_protos.ops.shapes import Shape

MOST_INLINED = 8  # nodes of an inlined value, its inlined operands counted

_BESIDE_PRODUCT = (POINTWISE, STORE)


def fuse(graph: Graph) -> Fusion:
    """Groups the values of a graph; see the rules at the top of this file."""
    return _Fuser(graph).run()


class _OperandGroups(NamedTuple):
    """The groups that compute the operands of a value, by number.

    `joinable[group]` is the placement that the value would have in a group that it may join. The value cannot join the
    groups in `blocked`, which must end before the value is computed, for the reason that `blocked` holds.
    """

    joinable: dict[int, Partial]
    blocked: dict[int, Reason]


class _Reader(NamedTuple):
    """A group that reads an operand from memory, and where in the group's space the elements of the operand lie."""

    group: int
    placement: Placement


class _Fuser:
    def __init__(self, graph: Graph) -> None:
        self._graph, self._values = graph, graph.values
        self._groups = Groups(len(graph.values))
        self._placement: list[Placement] = [()] * len(graph.values)  # of each value's result, in the space of its group
        self._nodes_inside: list[int] = [0] * len(graph.values)  # of each inlined value; 0 if the value is not inlined
        self._outer_uses = list(graph.uses)  # of each value: uses outside its own group
        self._writers: dict[int, list[int]] = {}
        self._stores = Counter([value.target.value for value in graph.values if value.target is not None])
        self._readers: dict[Operand, _Reader] = {}  # by operand: the last group that reads all of it from memory
        self._reasons: dict[tuple[int, int], Reason] = {}  # by value, and the number of a group that it did not join

    def run(self) -> Fusion:
        for number, (value, is_needed) in enumerate(zip(self._values, self._graph.is_needed, strict=True)):
            if is_needed:
                self._add(number, value)
        for number in self._graph.outputs:
            if self._nodes_inside[number]:
                self._materialise(number)
        return self._fusion()

    def _add(self, number: int, value: Value) -> None:
        form = value.form
        if form in LEAVES:
            return
        if form is ASSEMBLY:
            self._writers[number] = []
        elif form is PRODUCT:
            self._begin_product(number, value)
        elif form in WHOLE:
            self._begin_buffers(number, value).is_whole = True
        elif self._can_inline(value):
            self._nodes_inside[number] = 1 + sum(self._nodes_inside[operand.value] for operand in value.operands)
        else:
            self._assign_group(number, value)

    # ---- inlining ----

    def _can_inline(self, value: Value) -> bool:
        if value.form not in INLINED_FORMS or (is_heavy(value) and prod(value.shape) > 1):
            return False
        nodes = 1
        for base, layout in value.operands:
            inside = self._nodes_inside[base]
            if inside == 0 and self._values[base].form not in SLOTS:
                return False
            if inside and not _is_invertible(layout, self._values[base].shape):
                return False
            nodes += inside
        return nodes <= MOST_INLINED

    def _materialise(self, number: int) -> None:
        """Gives an inlined value a group and a buffer."""
        self._nodes_inside[number] = 0
        self._assign_group(number, self._values[number])

    def _materialise_operands(self, value: Value) -> None:
        for operand in value.operands:
            if self._nodes_inside[operand.value]:
                self._materialise(operand.value)

    def _inlined(self, operand: Operand, placement: Placement) -> Iterator[Member]:
        """The members that an inlined operand adds to a group that uses it at the points of `placement`.

        The operands of the inlined operand are among these members, even those that have got a buffer since.
        """
        value = self._values[operand.value]
        place = places.placement_of_source(operand.layout, value.shape, placement)
        assert place is not None, "a value is inlined only if it has a placement behind its views"
        for inner in value.operands:
            if self._values[inner.value].form not in SLOTS:
                yield from self._inlined(inner, place)
        yield Member(operand.value, place)

    # ---- assigning a value to a group ----

    def _begin_product(self, number: int, value: Value) -> None:
        group = self._begin_buffers(number, value)
        group.product_breaks = group.breaks = places.breaks_of(value.shape, views.dense_strides(value.shape))

    def _begin_buffers(self, number: int, value: Value) -> Group:
        """Makes a group for a value whose operands are buffers."""
        self._materialise_operands(value)
        group = self._groups.new(prod(value.shape))
        placement = views.dense_strides(value.shape)
        group.exposed = int(self._outer_uses[number] > 0)
        self._groups.add(group, Member(number, placement))
        self._placement[number] = placement
        computed = [one for base, _ in value.operands for one in self._writers.get(base) or (base,)]
        producers = [self._groups.of[one] for one in computed]
        reason = Reason.OF_PRODUCT if value.form is PRODUCT else Reason.OF_BUFFERS
        for producer in producers:
            if producer is not None:
                self._refuse(number, producer, reason)
        self._groups.wait(group, [producer.number for producer in producers if producer is not None])
        return group

    def _assign_group(self, number: int, value: Value) -> None:
        operand_groups = self._operand_groups(value)
        group = self._join_one(number, value, operand_groups)
        if group is None:
            group = self._begin(number, value)
        elif len(operand_groups.joinable) > 1:
            self._merge_others(group, number, operand_groups)
        if value.target is not None:
            self._writers[value.target.value].append(number)
        self._groups.wait(group, (*operand_groups.blocked, *operand_groups.joinable))
        self._refuse_blocked(number, operand_groups)

    def _join_one(self, number: int, value: Value, operand_groups: _OperandGroups) -> Group | None:
        """Adds the value to the latest group that can take it, and returns that group; None if no group can."""
        if not operand_groups.joinable:
            return self._join_reader(number, value, operand_groups)
        for candidate in sorted(operand_groups.joinable, reverse=True):
            group = self._groups[candidate]
            if group.is_product and value.form not in _BESIDE_PRODUCT:
                self._refuse(number, group, Reason.BESIDE_PRODUCT)
                continue
            placement = places.complete(value.domain, operand_groups.joinable[candidate], group.elements, group.walk)
            if placement is None:
                self._refuse(number, group, Reason.OTHER_POINTS)
                continue
            needs = self._needs_in(group, number, placement, operand_groups)
            if isinstance(needs, Needs):
                self._enter(group, number, value, placement, needs)
                return group
            self._refuse(number, group, needs)
        return None

    def _join_reader(self, number: int, value: Value, operand_groups: _OperandGroups) -> Group | None:
        """Adds the value to a group that reads one of its operands at the same points; None if there is no such group.

        An operand that repeats does not count: it is small, and values with nothing else in common may read it.
        """
        if value.form not in (POINTWISE, REDUCTION) and not self._copies_alone(value):
            return None
        for operand in value.operands:
            reader = self._readers.get(operand)
            if reader is None or _repeats(operand.layout):
                continue
            group = self._groups[self._groups.root[reader.group]]
            if group.is_product or prod(value.domain) != group.elements or group.number in operand_groups.blocked:
                continue
            needs = self._needs_in(group, number, reader.placement, operand_groups)
            if isinstance(needs, Needs):
                self._enter(group, number, value, reader.placement, needs)
                return group
        return None

    def _copies_alone(self, value: Value) -> bool:
        """Whether a value is a store that fills all of its target, to which nothing else is stored."""
        return value.target is not None and value.target.layout.is_dense and self._stores[value.target.value] == 1

    def _needs_in(
        self, group: Group, number: int, placement: Placement, operand_groups: _OperandGroups
    ) -> Needs | Reason:
        """The needs of a value in a group, or the reason why it cannot join."""
        value = self._values[number]
        for other in (*operand_groups.joinable, *operand_groups.blocked):
            if self._groups[other].ancestors >> group.number & 1:
                return Reason.CIRCLE
        needs = self._needs(group, value, placement)
        if isinstance(needs, Reason):
            return needs
        return misfit(group, needs) or (Reason.REPEATED if self._repeats_much(group, number, needs) else needs)

    def _repeats_much(self, group: Group, number: int, needs: Needs) -> bool:
        """Whether the kernel of a group with this value would repeat more work than `MOST_RECOMPUTED`."""
        if not group.reductions + needs.reductions:
            return False
        own_uses = Counter(self._read_of(group, self._values[number]))

        def is_stored(member: int) -> bool:
            return self._values[member].target is not None or self._outer_uses[member] > own_uses[member]

        members = [*(member for member, _ in group.members), number]
        return recomputed_weight(self._values, members, group.elements, is_stored) > MOST_RECOMPUTED

    def _begin(self, number: int, value: Value) -> Group:
        """Makes a group for a value. Stores the inlined operands that the group cannot compute, and reads them."""
        group = self._groups.new(prod(value.domain))
        placement = views.dense_strides(value.domain)
        needs = self._needs(group, value, placement)
        reason = needs if isinstance(needs, Reason) else misfit(group, needs)
        if reason is not None:
            self._materialise_operands(value)
            operand_groups = self._operand_groups(value)
            self._groups.wait(group, (*operand_groups.blocked, *operand_groups.joinable))
            self._refuse_blocked(number, operand_groups)
            for other in operand_groups.joinable:
                self._refuse(number, self._groups[other], reason)
            needs = self._needs(group, value, placement)
        assert isinstance(needs, Needs), f"an empty group takes any {value.form}"
        assert reason is None or misfit(group, needs) is None, f"an empty group takes any {value.form}"
        self._enter(group, number, value, placement, needs)
        return group

    def _enter(self, group: Group, number: int, value: Value, placement: Placement, needs: Needs) -> None:
        add_needs(group, needs)
        for operand, place in needs.accesses:
            if operand != value.target:
                self._readers[operand] = _Reader(group.number, place)
        group.exposed += self._outer_uses[number] > 0
        self._take_uses(group, self._read_of(group, value))
        self._groups.add(group, Member(number, placement))
        self._placement[number] = placement_of_result(value, placement)

    def _read_of(self, group: Group, value: Value) -> list[int]:
        """The members of a group that a value reads."""
        return [base for base, _ in value.operands if self._groups.of[base] is group]

    def _take_uses(self, group: Group, inside: list[int]) -> None:
        """Counts one use of each of the members `inside` as a use within their group."""
        outer_uses = self._outer_uses
        for base in inside:
            outer_uses[base] -= 1
            if not outer_uses[base]:
                group.exposed -= 1

    def _operand_groups(self, value: Value) -> _OperandGroups:
        """The groups of a value's operands. Inlined operands that no group can compute at its points are stored."""
        joinable: dict[int, Partial] = {}
        blocked: dict[int, Reason] = {}
        is_gather = value.form is GATHER
        for position, operand in enumerate(value.operands):
            base, is_data = operand.value, is_gather and position == 0
            if self._nodes_inside[base] and (is_data or not _is_invertible(operand.layout, self._values[base].shape)):
                self._materialise(base)
            for store in self._writers.get(base, ()):
                blocked[self._group(store).number] = Reason.SEVERAL_STORES
            group = self._groups.of[base]
            if group is not None:
                reason = self._try_join(joinable, group, operand, is_data=is_data)
                if reason is not None:
                    blocked[group.number] = reason
        blocked |= self._overwritten_groups(value)
        for number in blocked:
            joinable.pop(number, None)
        return _OperandGroups(joinable, blocked)

    def _overwritten_groups(self, value: Value) -> dict[int, Reason]:
        """The groups that store or read what a store overwrites."""
        blocked = {}
        for earlier in value.after:
            group = self._groups.of[earlier]
            if group is not None:  # else no result depends on it
                is_store = self._values[earlier].target is not None
                blocked[group.number] = Reason.OVERWRITES_STORED if is_store else Reason.OVERWRITES_READ
        return blocked

    def _try_join(
        self, joinable: dict[int, Partial], group: Group, operand: Operand, *, is_data: bool
    ) -> Reason | None:
        """Enters a value's placement in the group of its operand into `joinable`, or returns why it cannot join."""
        if is_data:
            return Reason.GATHERS
        if group.is_whole:
            return Reason.BESIDE_BUFFERS
        shape = self._values[operand.value].shape
        partial = places.placement_of_view(operand.layout, shape, self._placement[operand.value])
        if partial is None:
            return Reason.READS_A_PART
        known = joinable.get(group.number)
        together = partial if known is None else places.agree(known, partial)
        if together is None:
            return Reason.READS_TWO
        joinable[group.number] = together
        return None

    # ---- what a value needs ----

    def _needs(self, group: Group, value: Value, placement: Placement) -> Needs | Reason:
        walk = group.walk
        if value.form is REDUCTION:
            walk = places.walk_of_axes(value.domain, placement, value.axes)
            if walk is None:
                return Reason.UNEVEN
            if group.walk not in (None, walk):
                return Reason.OTHER_AXES
        inlined: set[Member] = set()
        accesses = set() if value.target is None else {Access(value.target, placement)}
        for operand in value.operands:
            if self._nodes_inside[operand.value]:
                inlined.update(self._inlined(operand, placement))
            elif self._is_memory(operand, group):
                accesses.add(Access(operand, placement))
        breaks, uncut = places.breaks_of(value.domain, placement), positions_of(value, placement)
        for number, place in inlined:
            breaks |= places.breaks_of(self._values[number].shape, place)
            uncut |= positions_of(self._values[number], place)
        turned = turned_of(value, placement)
        exposed, reductions = int(value.target is None), int(value.form is REDUCTION)
        return Needs(walk, breaks, uncut, accesses, turned, inlined, 1, exposed, reductions)

    def _is_memory(self, operand: Operand, group: Group) -> bool:
        """Whether the group reads the operand from memory: it is no slot and no value of the group itself."""
        own = self._groups.of[operand.value]
        if own is not None:
            return own is not group
        return self._values[operand.value].form not in SLOTS

    # ---- merging ----

    def _merge_others(self, group: Group, number: int, operand_groups: _OperandGroups) -> None:
        """Merges into `group`, where value `number` now is, the other groups that this value could have joined."""
        self._groups.wait(group, operand_groups.blocked)
        waiting = [other for other in operand_groups.joinable if other != group.number]
        for candidate in sorted(waiting, reverse=True):
            other = self._groups[candidate]
            reason = self._reason_not_to_merge(group, other, operand_groups.joinable[candidate])
            if any(self._groups[third].ancestors >> candidate & 1 for third in waiting):
                reason = Reason.CIRCLE
            if reason is None:
                self._absorb(group, other, number)
                waiting.remove(candidate)
                del operand_groups.joinable[candidate]
            else:
                self._refuse(number, other, reason)

    def _reason_not_to_merge(self, group: Group, other: Group, partial: Partial) -> Reason | None:
        """The reason, or None. `partial` is the placement that the last member of `group` would have in `other`."""
        have_one_walk = group.walk is None or other.walk is None or group.walk == other.walk
        if group.elements != other.elements or not have_one_walk:
            return Reason.OTHER_POINTS
        if places.agree(partial, group.members[-1].placement) is None:
            return Reason.OTHER_POINTS
        if (other.ancestors >> group.number | group.ancestors >> other.number) & 1:
            return Reason.CIRCLE
        if group.is_product or other.is_product:
            return self._reason_not_to_merge_product(group, other)
        needs = needs_of(group, other)
        return misfit(group, needs)

    def _reason_not_to_merge_product(self, group: Group, other: Group) -> Reason | None:
        """The reason why two groups, of which one computes a product, cannot become one; or None."""
        if group.is_product and other.is_product:
            return Reason.TWO_PRODUCTS
        product, beside = (group, other) if group.is_product else (other, group)
        if any(self._values[member.value].form not in _BESIDE_PRODUCT for member in beside.members):
            return Reason.BESIDE_PRODUCT
        return misfit(product, needs_of(product, beside))

    def _absorb(self, group: Group, other: Group, number: int) -> None:
        """Merges `other` into `group`; the member `number` of `group` uses values of both."""
        add_needs(group, needs_of(group, other))
        if other.is_product:
            group.product_breaks = other.product_breaks
        group.exposed += other.exposed
        self._take_uses(group, self._read_of(other, self._values[number]))
        self._groups.merge(group, other)

    def _group(self, value: int) -> Group:
        """The group of a value that has one."""
        group = self._groups.of[value]
        assert group is not None, "the value has a group"
        return group

    def _refuse_blocked(self, number: int, operand_groups: _OperandGroups) -> None:
        for other, reason in operand_groups.blocked.items():
            self._refuse(number, self._groups[other], reason)

    def _refuse(self, number: int, group: Group, reason: Reason) -> None:
        """Notes why a value is not in a group. The first reason stays."""
        self._reasons.setdefault((number, group.number), reason)

    def _fusion(self) -> Fusion:
        alive = self._groups.in_order()
        index_of = {group.number: index for index, group in enumerate(alive)}
        group_of = [None if group is None else index_of[group.number] for group in self._groups.of]
        root = self._groups.root
        waits_for = [tuple(sorted({index_of[root[other]] for other in group.waits_for})) for group in alive]
        return Fusion(
            self._graph,
            tuple(alive),
            tuple(group_of),
            self._writers,
            _stored(self._graph, alive, group_of),
            tuple(waits_for),
            {(value, index_of[root[group]]): reason for (value, group), reason in reversed(self._reasons.items())},
        )


@lru_cache(1 << 14)
def _repeats(layout: Layout) -> bool:
    """Whether a view shows an element more than once."""
    return any(stride == 0 and dim != 1 for dim, stride in zip(layout.shape, layout.strides, strict=True))


@lru_cache(1 << 14)
def _is_invertible(layout: Layout, shape: Shape) -> bool:
    """Whether a value can be computed at the points of this view of it."""
    return places.placement_of_source(layout, shape, (0,) * len(layout.shape)) is not None


def _stored(graph: Graph, groups: list[Group], group_of: list[int | None]) -> tuple[bool, ...]:
    is_stored = [False] * len(graph.values)
    for index, group in enumerate(groups):
        for number in _read_from_memory(graph, group):
            if group_of[number] not in (None, index):
                is_stored[number] = True
    for number in graph.outputs:
        is_stored[number] = graph.values[number].form is not ASSEMBLY
    return tuple(is_stored)


def _read_from_memory(graph: Graph, group: Group) -> list[int]:
    """The values that a group reads from memory. After a merge the group itself may compute some of these values."""
    members = [graph.values[member.value] for member in group.members if group.reads_buffers]
    of_buffers = [base for value in members if value.form in (PRODUCT, *WHOLE) for base, _ in value.operands]
    return of_buffers + [operand.value for operand, _ in group.accesses]
