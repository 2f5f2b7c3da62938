"""Expands composite ops, such as `mean` and `softmax`, into small programs of primitive ops.

The expansion defines the op: the compiler plans it in place of the op, the interpreter runs it, and a user who writes
the same ops by hand gets the same bits. Halves are cast to float32 first and back at the end, so that no intermediate
value is rounded to half precision.

The inputs of the program are the operands of the op. Its scalars have the fixed values `constants`: zero, the number of
elements that are reduced to one, and the numbers among the op's attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from fusewire_kernels.ops.conversions import rounded
from fusewire_kernels.ops.written_parts import part_of
from fusewire_protos.ops import catalogue, shapes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import Shape, Spec
from fusewire_protos.programs import program
from fusewire_protos.programs.program import Program, ProgramOp


class Expansion(NamedTuple):
    """A program of primitive ops with one live result, its last, and the values of its scalars."""

    program: Program
    constants: tuple[int | float, ...]


@lru_cache(1024)
def expand(op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> Expansion:
    """The expansion of a composite op over operands of these specs. Raises LookupError if it has no formula."""
    formula = part_of(op.name, _FORMULAS, "expansion: add it to _FORMULAS in ops/composites.py")
    dtype = op.dtype_rule(tuple(spec.dtype for spec in operands), attributes).result
    numbers = [rounded(number, dtype) for number in op.numbers(attributes)]
    writer = _ProgramWriter(op, operands, dtype.accumulator, attributes, len(numbers))
    result = formula(writer, writer.operands_in_computed_dtype())
    if dtype is not dtype.accumulator:
        writer.apply("astype", result, attributes=(dtype.code,))
    return Expansion(writer.program(), (0, prod(operands[0].shape[axis] for axis in writer.axes), *numbers))


class _ProgramWriter:
    """Writes the program of an expansion op by op; its methods take and give operand numbers of that program.

    `attributes` are those of the composite op; `numbers` counts the numbers among them. `axes` are the axes to reduce,
    possibly none; `keeps_axes`: the last sum keeps them with length 1.
    """

    def __init__(self, op: Op, inputs: tuple[Spec, ...], computed: DType, attributes: Attributes, numbers: int) -> None:
        named = {attribute.name: value for attribute, value in zip(op.attributes, attributes, strict=True)}
        self.zero, self.count = len(inputs), len(inputs) + 1
        self.axes: Shape = named.get("axes", ())
        self.keeps_axes: bool = named.get("keepdims", True)
        self._inputs, self._computed = inputs, computed
        self._numbers = [self.count + 1 + position for position in range(numbers)]
        self._first_result = self.count + 1 + numbers
        self._ops: list[ProgramOp] = []

    def operands_in_computed_dtype(self) -> list[int]:
        """The op's operands, cast, and behind them the numbers among its attributes."""
        operands = [
            number if spec.dtype is self._computed else self.apply("astype", number, attributes=(self._computed.code,))
            for number, spec in enumerate(self._inputs)
        ]
        return operands + self._numbers

    def apply(self, name: str, *operands: int, attributes: tuple[Any, ...] = ()) -> int:
        self._ops.append(ProgramOp(catalogue.BY_NAME[name], operands, attributes))
        return self._first_result + len(self._ops) - 1

    def reduced(self, name: str, operand: int) -> int:
        return self.apply(name, operand, attributes=(self.axes, True))

    def last_sum(self, operand: int) -> int:
        return self.apply("sum", operand, attributes=(self.axes, self.keeps_axes))

    def mean(self, operand: int) -> int:
        return self.apply("divide", self.reduced("sum", operand), self.count)

    def squeezed(self, operand: int) -> int:
        """The operand without its reduced axes, which have length 1."""
        shape = shapes.reduce(self._inputs[0].shape, self.axes, keepdims=False)
        return self.apply("reshape", operand, attributes=(shape,))

    def program(self) -> Program:
        scalars = (self._computed,) * (2 + len(self._numbers))
        return program.build(self._inputs, scalars, self._ops, (len(self._ops) - 1,))


def _mean(writer: _ProgramWriter, operands: list[int]) -> int:
    return writer.apply("divide", writer.last_sum(operands[0]), writer.count)


def _var(writer: _ProgramWriter, operands: list[int]) -> int:
    array, correction = operands
    deviations = writer.apply("subtract", array, writer.mean(array))
    squares = writer.last_sum(writer.apply("square", deviations))
    divisor = writer.apply("maximum", writer.apply("subtract", writer.count, correction), writer.zero)
    return writer.apply("divide", squares, divisor)


def _std(writer: _ProgramWriter, operands: list[int]) -> int:
    return writer.apply("sqrt", _var(writer, operands))


def _logsumexp(writer: _ProgramWriter, operands: list[int]) -> int:
    """Subtracts the greatest element first, unless it is infinite, because the difference would be NaN."""
    greatest = writer.reduced("max", operands[0])
    shift = writer.apply("where", writer.apply("isinf", greatest), writer.zero, greatest)
    powers = writer.apply("exp", writer.apply("subtract", operands[0], shift))
    result = writer.apply("add", writer.apply("log", writer.reduced("sum", powers)), shift)
    return result if writer.keeps_axes else writer.squeezed(result)


def _softmax(writer: _ProgramWriter, operands: list[int]) -> int:
    powers = writer.apply("exp", writer.apply("subtract", operands[0], writer.reduced("max", operands[0])))
    return writer.apply("divide", powers, writer.reduced("sum", powers))


def _log_softmax(writer: _ProgramWriter, operands: list[int]) -> int:
    shifted = writer.apply("subtract", operands[0], writer.reduced("max", operands[0]))
    total = writer.reduced("sum", writer.apply("exp", shifted))
    return writer.apply("subtract", shifted, writer.apply("log", total))


def _layer_norm(writer: _ProgramWriter, operands: list[int]) -> int:
    array, epsilon = operands
    centred = writer.apply("subtract", array, writer.mean(array))
    variance = writer.mean(writer.apply("square", centred))
    return writer.apply("divide", centred, writer.apply("sqrt", writer.apply("add", variance, epsilon)))


_Formula = Callable[[_ProgramWriter, list[int]], int]

_FORMULAS: dict[str, _Formula] = {
    "mean": _mean,
    "var": _var,
    "std": _std,
    "logsumexp": _logsumexp,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "layer_norm": _layer_norm,
}
