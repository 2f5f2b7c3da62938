"""Makes the graph of a program: writes out casts, expands composites, and turns views into addressing.

The graph leaves out ops that no live result depends on. Every live result is a whole buffer in C order.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from fusewire_kernels.graph.graph import CONSTANT, INPUT, LEAVES, SCALAR, SLOTS, Graph, Operand, Value, needs_and_uses
from fusewire_kernels.graph.op_builder import OpBuilder
from fusewire_kernels.graph.views import Layout
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.programs.program import Program, ProgramOp


def build_graph(program: Program, *, for_gpu: bool) -> Graph:
    """The graph of a program. `for_gpu` is as in `OpBuilder`."""
    construction = _Construction(program, needed_ops(program), for_gpu=for_gpu)
    construction.add_ops()
    outputs, results = construction.outputs(), construction.results()
    return Graph(tuple(construction.values), outputs, *needs_and_uses(construction.values, outputs), results)


def needed_ops(program: Program) -> list[bool]:
    """For each op, whether a live result depends on it."""
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


class _Template(NamedTuple):
    """The one value that an op became, to be copied for equal ops over operands of equal types.

    `layouts[i]` is the layout with which the value reads operand i, or None for the operand's own layout. `constants`
    are the value's operands behind the op's operands. `layout` is the layout of the op's result over the value, and
    `result_type` is the number of the result's operand type.
    """

    value: Value
    layouts: tuple[Layout | None, ...]
    constants: tuple[Operand, ...]
    layout: Layout
    result_type: int


class _Construction:
    """Appends the values of one op after another. `_numbered[n]` is the view that stands for the program's operand n.

    The *type* of an operand consists of its dtype, its layout, whether it is a slot, and whether it is a copy of a view
    that may be read instead. Loop bodies repeat a few ops
    over operands of equal types. The value that such an op becomes is copied from a template.
    """

    def __init__(self, program: Program, needed: list[bool], *, for_gpu: bool) -> None:
        self._program, self._needed = program, needed
        self._ops = OpBuilder(program, needed, for_gpu=for_gpu)
        self.values = self._ops.values
        self._operand_types: dict[tuple[DType, Layout, bool, bool], int] = {}
        self._templates: dict[tuple[Any, ...], _Template] = {}  # by op, attributes and the types of operands
        leaves = [Value(INPUT, spec.dtype, spec.shape, 0, number=number) for number, spec in enumerate(program.inputs)]
        leaves += [Value(SCALAR, dtype, (), 0, number=number) for number, dtype in enumerate(program.scalars)]
        self._numbered = {number: self._ops.add(leaf) for number, leaf in enumerate(leaves)}
        self._type_of = {number: self._operand_type(operand) for number, operand in self._numbered.items()}

    def add_ops(self) -> None:
        """Adds the values of each op that a live result depends on."""
        numbered, type_of = self._numbered, self._type_of
        number = self._program.first_result
        for index, op in enumerate(self._program.ops):
            if self._needed[index]:
                self._ops.origin = index
                entry, read, attributes = op
                operands = [numbered[operand] for operand in read]
                key = (entry, attributes, *[type_of[operand] for operand in read])
                template = self._templates.get(key)
                if template is None:
                    self._add_first(number, op, operands, key)
                else:
                    numbered[number] = self._from_template(template, operands)
                    type_of[number] = template.result_type
            number += 1
            if op.op.takes_starts:
                self._ops.first_start += op.op.starts(op.attributes)

    def outputs(self) -> tuple[int, ...]:
        """One value for each live result. A result that is not a whole buffer, or is live twice, is copied."""
        found: list[int] = []
        for index in self._program.live:
            self._ops.origin = index
            operand = self._numbered[self._program.first_result + index]
            if operand.value in found or not self._is_whole_result(operand):
                operand = self._ops.copy(operand)
            found.append(operand.value)
        return tuple(found)

    def results(self) -> tuple[int | None, ...]:
        """The value that the result of each op is a view of; None for an op that was left out."""
        first, numbered = self._program.first_result, self._numbered
        return tuple(
            [numbered[first + index][0] if is_needed else None for index, is_needed in enumerate(self._needed)]
        )

    def _add_first(self, number: int, op: ProgramOp, operands: list[Operand], key: tuple[Any, ...]) -> None:
        """Adds the values of an op that has no template. Keeps a template if the op became only one value."""
        given, first = tuple(operands), len(self.values)
        result = self._numbered[number] = self._ops.result(op, operands, self._program.specs[number])
        result_type = self._type_of[number] = self._operand_type(result)
        if result.value == first == len(self.values) - 1:
            self._keep_template(key, given, result, result_type)

    def _keep_template(
        self, key: tuple[Any, ...], given: tuple[Operand, ...], result: Operand, result_type: int
    ) -> None:
        """Keeps an op's only value as a template, if the value reads only constants and the op's operands."""
        value = self.values[result.value]
        viewed, constants = value.operands[: len(given)], value.operands[len(given) :]
        is_of_given = given and [base for base, _ in viewed] == [base for base, _ in given]
        is_of_constants = all(self.values[base].form is CONSTANT for base, _ in constants)
        if is_of_given and is_of_constants and value.body != "cast":  # casts of one operand are one value
            value = self.values[result.value] = value._replace(kind=len(self._templates))
            views_of = zip(viewed, given, strict=True)
            layouts = tuple([None if view == whole else view.layout for view, whole in views_of])
            self._templates[key] = _Template(value, layouts, constants, result.layout, result_type)

    def _from_template(self, template: _Template, operands: list[Operand]) -> Operand:
        """Adds a copy of a template over other operands of the same types."""
        for position, view in enumerate(template.layouts):
            if view is not None:
                operands[position] = Operand(operands[position][0], view)
        self.values.append(template.value._replace(origin=self._ops.origin, operands=(*operands, *template.constants)))
        return Operand(len(self.values) - 1, template.layout)

    def _operand_type(self, operand: Operand) -> int:
        value = self.values[operand.value]
        is_copy = operand.value in self._ops.copied
        return self._operand_types.setdefault(
            (value.dtype, operand.layout, value.form in SLOTS, is_copy), len(self._operand_types)
        )

    def _is_whole_result(self, operand: Operand) -> bool:
        value = self.values[operand.value]
        is_computed = value.form not in LEAVES
        return is_computed and operand.layout.is_dense and prod(value.shape) == prod(operand.layout.shape)
