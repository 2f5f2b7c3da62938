"""Describes a group that runs as loops. The description names no values and buffers, so equal groups share a kernel.

A *loop nest* holds everything that decides the kernel of a group and the kernel's sizes. The groups of a repeated loop
body differ only in their buffers, so these groups have the same loop nest. An *outline* is a shorter key. Groups with
equal outlines have equal loop nests, so a loop nest is made only once for each outline.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fusewire_kernels.fusion.fusion import Fusion, inlined_as, placement_of_result
from fusewire_kernels.fusion.groups import Group, Member
from fusewire_kernels.fusion.placement import Placement, Walk
from fusewire_kernels.graph import views
from fusewire_kernels.graph.graph import GATHER, INDEX, PRODUCT, REDUCTION, SLOTS, Gathered, Operand
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape


class NestArgument(NamedTuple):
    """An argument of a loop nest: the number of the group's buffer, and how the group moves through the buffer.

    `shape`, `strides` and `placement` describe the moves. The slot table itself holds the value of a slot, so a slot
    has one value and no shape.
    """

    buffer: int
    dtype: DType
    is_slot: bool
    shape: Shape = ()
    strides: Shape = ()
    placement: Placement = ()
    gathered: Gathered | None = None


PRODUCT_BUFFER = -1  # the number that stands for the result of the group's product, which lies in no buffer


class NestNode(NamedTuple):
    """A value that a loop nest computes. Each operand is the number of another node, or an argument."""

    body: str
    is_reduction: bool
    operand_dtype: DType
    dtype: DType
    operands: tuple[int | NestArgument, ...]
    axis: Walk | None  # the axis whose positions are the elements; only for an INDEX value


class LoopNest(NamedTuple):
    """All that decides a loop kernel and its sizes. A store is a pair: the source, and the argument that it writes."""

    elements: int
    walk: Walk | None
    breaks: frozenset[int]
    nodes: tuple[NestNode, ...]
    stores: tuple[tuple[int | NestArgument, NestArgument], ...]


class Nested(NamedTuple):
    """A loop nest, the buffers to which its numbers refer, and the value of the graph that each node computes."""

    nest: LoopNest
    buffers: list[Operand]
    computed: tuple[int, ...]


def loop_nest_of(fusion: Fusion, index: int) -> Nested:
    """Returns the loop nest of group number `index`.

    If the group computes a product, the loop nest is its epilogue, and the argument with the buffer `PRODUCT_BUFFER` is
    the result of the product.
    """
    group = fusion.groups[index]
    writer = _LoopNestWriter(fusion, index)
    writer.write()
    nest = LoopNest(group.elements, group.walk, group.breaks, tuple(writer.nodes), tuple(writer.stores))
    return Nested(nest, writer.buffers, tuple(writer.computed))


def outline_of(fusion: Fusion, group: Group) -> tuple[tuple[Any, ...], list[Operand]] | None:
    """Returns the outline of a group, and the buffers to which the numbers in the outline refer.

    Returns None if a member has no `kind` or if the group has inlined values. An outline holds the group's number of
    points, its walk and its breaks. For each member the outline holds the kind, the placement, whether the member is
    stored, and the numbers of the operands. An operand that is a member has the number 0, 1, 2 …, and a buffer has the
    number -1, -2, -3 … in order of first use.
    """
    if group.inlined:
        return None
    values, is_stored = fusion.graph.values, fusion.is_stored
    outline: list[Any] = [group.elements, group.walk, group.breaks]
    number_of: dict[object, int] = {}  # key: the value of a member, or the (value, offset, moves) of a buffer
    buffers: list[Operand] = []
    for position, (number, placement) in enumerate(group.members):
        value = values[number]
        if value.kind is None:
            return None
        outline += (value.kind, placement, is_stored[number])
        for operand in value.operands:
            base, (_, _, offset, moves) = operand
            known = number_of.get(base)
            if known is None:
                address = (base, offset, moves)
                known = number_of.get(address)
                if known is None:
                    known = number_of[address] = -1 - len(buffers)
                    buffers.append(_whole_slot(base) if values[base].form in SLOTS else operand)
            outline.append(known)
        number_of[number] = position
        if is_stored[number]:
            buffers.append(Operand(number, views.dense(value.shape)))
    return tuple(outline), buffers


def _whole_slot(value: int) -> Operand:
    return Operand(value, views.dense(()))


class _LoopNestWriter:
    def __init__(self, fusion: Fusion, index: int) -> None:
        self.nodes: list[NestNode] = []
        self.computed: list[int] = []  # of each node: the value of the graph
        self.stores: list[tuple[int | NestArgument, NestArgument]] = []
        self.buffers: list[Operand] = []
        self._values, self._is_stored = fusion.graph.values, fusion.is_stored
        self._group = fusion.groups[index]
        # Key: the number of a member's value, or a `Member`. The entry is a node, or the argument of the product.
        self._node_of: dict[object, int | NestArgument] = {}
        self._buffer_of: dict[tuple[int, int, tuple[views.Move, ...]], int] = {}

    def write(self) -> None:
        """Writes the nodes of all members, and a store for each member that needs one."""
        values, is_stored = self._values, self._is_stored
        for member in self._group.members:
            number, placement = member
            value = values[number]
            if value.target is not None:
                target = self._array_argument(value.target, placement)
                self.stores.append((self._operand(value.operands[0], placement), target))
                continue
            node = self._result(number, placement)
            self._node_of[number] = self._node_of[member] = node
            if is_stored[number]:
                kept = placement_of_result(value, placement)
                self.stores.append((node, self._array_argument(Operand(number, views.dense(value.shape)), kept)))

    def _result(self, number: int, placement: Placement) -> int | NestArgument:
        value = self._values[number]
        if value.form is PRODUCT:
            strides = views.dense_strides(value.shape)
            return NestArgument(PRODUCT_BUFFER, value.dtype, False, value.shape, strides, placement)
        return self._node(number, placement)

    def _node(self, number: int, placement: Placement) -> int:
        value = self._values[number]
        if value.form is GATHER:
            data, position = value.operands
            read: list[int | NestArgument] = [
                self._array_argument(data, placement, value.gathered),
                self._operand(position, placement),
            ]
        else:
            read = [self._operand(operand, placement) for operand in value.operands]
        return self._add_node(number, placement, read)

    def _add_node(self, number: int, placement: Placement, read: list[int | NestArgument]) -> int:
        value = self._values[number]
        self.computed.append(number)
        axis = Walk(value.shape[0], placement[0]) if value.form is INDEX else None
        is_reduction = value.form is REDUCTION
        self.nodes.append(NestNode(value.body, is_reduction, value.operand_dtype, value.dtype, tuple(read), axis))
        return len(self.nodes) - 1

    def _operand(self, operand: Operand, placement: Placement) -> int | NestArgument:
        if self._group.inlined:  # first, because the group may compute the value at its own points too
            member = inlined_as(self._values, self._group, operand, placement)
            if member is not None:
                return self._inlined(member)
        own = self._node_of.get(operand[0])
        if own is not None:
            return own
        if self._values[operand[0]].form in SLOTS:
            return self._slot(operand)
        return self._array_argument(operand, placement)

    def _inlined(self, member: Member) -> int:
        """Returns the number of the node of an inlined value. Adds the node if it is missing.

        The operands of the value are inlined too. They are computed at the same points.
        """
        known = self._node_of.get(member)
        if isinstance(known, int):
            return known
        value, read = self._values[member.value], []
        for operand in value.operands:
            inner = inlined_as(self._values, self._group, operand, member.placement)
            read.append(self._slot(operand) if inner is None else self._inlined(inner))
        node = self._node_of[member] = self._add_node(member.value, member.placement, read)
        return node

    def _slot(self, operand: Operand) -> NestArgument:
        return NestArgument(self._buffer(_whole_slot(operand.value)), self._values[operand.value].dtype, is_slot=True)

    def _array_argument(self, operand: Operand, placement: Placement, gathered: Gathered | None = None) -> NestArgument:
        number, layout = operand
        value = self._values[number]
        shape, strides, _, _ = layout
        return NestArgument(self._buffer(operand), value.dtype, False, shape, strides, placement, gathered)

    def _buffer(self, operand: Operand) -> int:
        """Returns the number of an operand's buffer.

        Two operands count as different buffers if they view one value at different offsets.
        """
        value, (_, _, offset, moves) = operand
        key = (value, offset, moves)
        known = self._buffer_of.get(key)
        if known is None:
            known = self._buffer_of[key] = len(self.buffers)
            self.buffers.append(operand)
        return known
