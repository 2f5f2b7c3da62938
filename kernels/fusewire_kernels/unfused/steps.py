"""Turns each op of a program into steps: calls of one primitive op, over values that are dense in memory. Pure.

A composite op becomes the steps of its expansion. Operands of mixed dtypes are cast first. Operands that broadcast in
many loops, or are reduced along axes that others part, are copied first. Each is a step of its own, so that few
different calls, and so few kernels, compute every op. A view is a step that copies, so every value is in C order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from fusewire_kernels.ops.composites import expand
from fusewire_kernels.unfused.broadcasting import MOST_LOOPS_OF_BATCHES, most_loops, repeated
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.ops import shapes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Category, Op
from fusewire_protos.ops.shapes import Shape, Spec
from fusewire_protos.ops.signatures import Signature
from fusewire_protos.programs.program import Program

_ASTYPE, _BROADCAST_TO = BY_NAME["astype"], BY_NAME["broadcast_to"]
_TRANSPOSE, _RESHAPE = BY_NAME["transpose"], BY_NAME["reshape"]


class Constant(NamedTuple):
    """A number that the program implies, as an array of rank 0."""

    value: int | float
    dtype: DType


class Step(NamedTuple):
    """One call. `operands` are numbers of the op's values; so is the result: each step adds the next number.

    `dying` are the results of earlier steps of this op that no later step reads.
    """

    call: OneOpCall
    operands: tuple[int, ...]
    result_bytes: int
    dying: tuple[int, ...]


class OpSteps(NamedTuple):
    """The steps of one op. The last step's result is the op's.

    The op's values are numbered: first its operands, then `constants`, then the result of each step.
    """

    constants: tuple[Constant, ...]
    steps: tuple[Step, ...]


class _Writer:
    """Writes the calls of one op. Values are numbered as they are added."""

    def __init__(self, specs: Sequence[Spec]) -> None:
        self.specs = [*specs]
        self.constants: list[Constant] = []
        self.calls: list[tuple[OneOpCall, tuple[int, ...]]] = []

    def write(self, op: Op, operands: Sequence[int], attributes: Attributes) -> int:
        """Adds the calls of an op. Returns the number of its result."""
        if op.category is Category.COMPOSITE:
            return self._write_expansion(op, operands, attributes)
        operands = self._cast(op, operands, attributes)
        if op.category is Category.REDUCTION and not _are_neighbours(self.specs[operands[0]].shape, attributes[0]):
            return self._reduce_last(op, operands[0], attributes)
        return self._call(op, self._spread(op, operands), attributes)

    def _reduce_last(self, op: Op, operand: int, attributes: Attributes) -> int:
        """Adds the calls of a reduction of axes that others part: these axes become the last ones first."""
        shape, (axes, keepdims) = self.specs[operand].shape, attributes
        kept = tuple([axis for axis in range(len(shape)) if axis not in axes])
        turned = self._call(_TRANSPOSE, [operand], ((*kept, *axes),))
        result = self._call(op, [turned], (tuple(range(len(kept), len(shape))), False))
        if not keepdims:
            return result
        return self._call(_RESHAPE, [result], (shapes.reduce(shape, axes, keepdims=True),))

    def _write_expansion(self, op: Op, operands: Sequence[int], attributes: Attributes) -> int:
        program, constants = expand(op, self._specs_of(operands), attributes)
        numbers = [*operands, *self._add_constants(constants, program.scalars)]
        for inner in program.ops:
            numbers.append(self.write(inner.op, [numbers[operand] for operand in inner.operands], inner.attributes))
        result: int = numbers[-1]
        return result

    def _add_constants(self, values: Sequence[int | float], dtypes: Sequence[DType]) -> range:
        """Adds constants. All of them come before the first call, because a composite op holds no other one."""
        assert not self.calls, "an expansion has primitive ops only"
        first = len(self.specs)
        self.constants += map(Constant, values, dtypes)
        self.specs += [Spec(dtype, ()) for dtype in dtypes]
        return range(first, len(self.specs))

    def _cast(self, op: Op, operands: Sequence[int], attributes: Attributes) -> list[int]:
        """Returns the operands in the dtypes that the op computes in, if an op of such operands gives the same."""
        given = tuple([self.specs[number].dtype for number in operands])
        rule = op.dtype_rule(given, attributes)
        if rule.operands == given or op.dtype_rule(rule.operands, attributes) != rule:
            return [*operands]
        return [
            number if self.specs[number].dtype is dtype else self._call(_ASTYPE, [number], (dtype.code,))
            for number, dtype in zip(operands, rule.operands, strict=True)
        ]

    def _spread(self, op: Op, operands: list[int]) -> list[int]:
        """Returns the operands, those copied first that repeat in more loops than kernels are listed for."""
        specs = self._specs_of(operands)
        shapes_of_all = [spec.shape for spec in specs]
        if op.category is Category.POINTWISE:
            kept, most = 0, most_loops([spec.dtype for spec in specs])
        elif op.category is Category.PRODUCT:
            kept, most = 2, MOST_LOOPS_OF_BATCHES  # the last two axes do not broadcast
        else:
            return operands
        if min(map(len, shapes_of_all), default=0) < kept:
            return operands
        repeating = [shape[: len(shape) - kept] for shape in shapes_of_all]
        is_copied = repeated(repeating, most)
        whole = shapes.broadcast(*repeating)
        return [
            self._call(_BROADCAST_TO, [number], ((*whole, *shape[len(shape) - kept :]),)) if copied else number
            for number, shape, copied in zip(operands, shapes_of_all, is_copied, strict=True)
        ]

    def _call(self, op: Op, operands: Sequence[int], attributes: Attributes) -> int:
        call = OneOpCall(op, self._specs_of(operands), attributes)
        self.calls.append((call.of_bits(), tuple(operands)))
        self.specs.append(call.result())
        return len(self.specs) - 1

    def _specs_of(self, numbers: Sequence[int]) -> tuple[Spec, ...]:
        return tuple([self.specs[number] for number in numbers])


def steps_of(signature: Signature) -> OpSteps:
    """Returns the steps of an op on operands of given specs."""
    writer = _Writer(signature.operands)
    writer.write(signature.op, range(len(signature.operands)), signature.attributes)
    first = len(writer.specs) - len(writer.calls)
    last_uses = {number: index for index, (_, operands) in enumerate(writer.calls) for number in operands}
    dying: list[tuple[int, ...]] = [()] * len(writer.calls)
    for number, index in last_uses.items():
        if number >= first:
            dying[index] += (number,)
    return OpSteps(
        tuple(writer.constants),
        tuple(
            [
                Step(call, operands, spec.size_bytes, ends)
                for (call, operands), spec, ends in zip(writer.calls, writer.specs[first:], dying, strict=True)
            ]
        ),
    )


def _are_neighbours(shape: Shape, axes: Shape) -> bool:
    """Returns whether no axis of several elements lies between two reduced axes of several elements."""
    moving = [axis in axes for axis, dim in enumerate(shape) if dim != 1]
    return 0 in shape or sum(is_reduced for is_reduced, _ in groupby(moving)) <= 1


def dying_results(program: Program) -> list[tuple[int, ...]]:
    """Returns for each op the results that are not live and that no later op reads, as operand numbers.

    A result that nothing reads dies at its own op.
    """
    first, ops = program.first_result, program.op_count
    last_uses = dict(zip(range(first, first + ops), range(ops), strict=True))
    for index, operands in enumerate(program.operands):
        for operand in operands:
            if operand >= first:
                last_uses[operand] = index
    for index in program.live:
        del last_uses[first + index]
    dying: list[tuple[int, ...]] = [()] * ops
    for number, last in last_uses.items():
        dying[last] += (number,)
    return dying
