"""From a program to its graph: casts written out, composites expanded, views turned into addressing.

Ops that nothing live needs are left out. Every live result is a whole buffer in C order.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from fusewire_kernels.graph.graph import CONSTANT, INPUT, LEAVES, SCALAR, SLOTS, Graph, Operand, Value
from fusewire_kernels.graph.op_builder import OpBuilder
from fusewire_kernels.graph.views import Layout
from fusewire_protos.dtypes import DType
from fusewire_protos.program import Program, ProgramOp


def build_graph(program: Program) -> Graph:
    """The graph of a program."""
    construction = _Construction(program, needed_ops(program))
    construction.add_ops()
    outputs = construction.outputs()
    return Graph(tuple(construction.values), outputs, *_needs_and_uses(construction.values, outputs))


def needed_ops(program: Program) -> list[bool]:
    """Of each op, whether a live result depends on it."""
    first = program.first_result
    needed = [False] * len(program.ops)
    for index in program.live:
        needed[index] = True
    for index in range(len(program.ops) - 1, -1, -1):
        if needed[index]:
            for operand in program.ops[index].operands:
                if operand >= first:
                    needed[operand - first] = True
    return needed


class _Mould(NamedTuple):
    """An op that became one new value, to be made again of other operands.

    `layouts[i]` is how the value views operand i, None if as that comes; `constants` are its operands behind those.
    `layout` is how the op's result views the value, and `look` what it looks like.
    """

    value: Value
    layouts: tuple[Layout | None, ...]
    constants: tuple[Operand, ...]
    layout: Layout
    look: int


class _Construction:
    """Appends the values of one op after another. `_numbered[n]` is what operand number n of the program became.

    Bodies of loops repeat a few ops over operands that *look* alike: equal in dtype, in layout, and in whether they are
    slots. What such an op became once, it becomes again.
    """

    def __init__(self, program: Program, needed: list[bool]) -> None:
        self._program, self._needed = program, needed
        self._ops = OpBuilder(program, needed)
        self.values = self._ops.values
        self._looks: dict[tuple[DType, Layout, bool], int] = {}
        self._moulds: dict[tuple[Any, ...], _Mould] = {}  # by op, attributes and the looks of operands
        leaves = [Value(INPUT, spec.dtype, spec.shape, 0, number=number) for number, spec in enumerate(program.inputs)]
        leaves += [Value(SCALAR, dtype, (), 0, number=number) for number, dtype in enumerate(program.scalars)]
        self._numbered = {number: self._ops.add(leaf) for number, leaf in enumerate(leaves)}
        self._look_of = {number: self._look(operand) for number, operand in self._numbered.items()}

    def add_ops(self) -> None:
        """Adds what each op becomes that something live needs."""
        numbered, look_of = self._numbered, self._look_of
        number = self._program.first_result
        for index, op in enumerate(self._program.ops):
            if self._needed[index]:
                self._ops.origin = index
                entry, read, attributes = op
                operands = [numbered[operand] for operand in read]
                likeness = (entry, attributes, *[look_of[operand] for operand in read])
                mould = self._moulds.get(likeness)
                if mould is None:
                    self._first_alike(number, op, operands, likeness)
                else:
                    numbered[number] = self._again(mould, operands)
                    look_of[number] = mould.look
            number += 1
            if op.op.has_region:
                self._ops.first_start += op.op.starts(op.attributes)

    def outputs(self) -> tuple[int, ...]:
        """The value of each live result: the one that holds it if that is a whole buffer, otherwise a copy."""
        found: list[int] = []
        for index in self._program.live:
            self._ops.origin = index
            operand = self._numbered[self._program.first_result + index]
            if operand.value in found or not self._is_whole_result(operand):
                operand = self._ops.copy(operand)
            found.append(operand.value)
        return tuple(found)

    def _first_alike(self, number: int, op: ProgramOp, operands: list[Operand], likeness: tuple[Any, ...]) -> None:
        """Adds what an op becomes. If that is one value, the next that are alike may be copies of it."""
        given, first = tuple(operands), len(self.values)
        result = self._numbered[number] = self._ops.result(op, operands, self._program.specs[number])
        look = self._look_of[number] = self._look(result)
        if result.value == first == len(self.values) - 1:
            self._keep_mould(likeness, given, result, look)

    def _keep_mould(self, likeness: tuple[Any, ...], given: tuple[Operand, ...], result: Operand, look: int) -> None:
        """Remembers what an op became, one value, if that is made of its own operands."""
        value = self.values[result.value]
        viewed, constants = value.operands[: len(given)], value.operands[len(given) :]
        is_of_given = given and [base for base, _ in viewed] == [base for base, _ in given]
        is_of_constants = all(self.values[base].form is CONSTANT for base, _ in constants)
        if is_of_given and is_of_constants and value.body != "cast":  # casts of one operand are one value
            value = self.values[result.value] = value._replace(kind=len(self._moulds))
            views_of = zip(viewed, given, strict=True)
            layouts = tuple([None if view == whole else view.layout for view, whole in views_of])
            self._moulds[likeness] = _Mould(value, layouts, constants, result.layout, look)

    def _again(self, mould: _Mould, operands: list[Operand]) -> Operand:
        """What an op becomes that is like another one."""
        for position, view in enumerate(mould.layouts):
            if view is not None:
                operands[position] = Operand(operands[position][0], view)
        self.values.append(mould.value._replace(origin=self._ops.origin, operands=(*operands, *mould.constants)))
        return Operand(len(self.values) - 1, mould.layout)

    def _look(self, operand: Operand) -> int:
        value = self.values[operand.value]
        return self._looks.setdefault((value.dtype, operand.layout, value.form in SLOTS), len(self._looks))

    def _is_whole_result(self, operand: Operand) -> bool:
        value = self.values[operand.value]
        is_computed = value.form not in LEAVES
        return is_computed and operand.layout.is_dense and prod(value.shape) == prod(operand.layout.shape)


def _needs_and_uses(values: list[Value], outputs: tuple[int, ...]) -> tuple[tuple[bool, ...], tuple[int, ...]]:
    """Of each value, whether an output depends on it, and how often it is used then."""
    is_needed = [False] * len(values)
    uses = [0] * len(values)
    for number in outputs:
        uses[number] += 1
    for number in range(len(values) - 1, -1, -1):
        value = values[number]
        if uses[number if value.target is None else value.target.value]:
            is_needed[number] = True
            for base, _ in value.operands:
                uses[base] += 1
    return tuple(is_needed), tuple(uses)
