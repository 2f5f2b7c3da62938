"""Which ops of a program tier 0 cannot leave to the array library. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fusewire_kernels.expand import expand
from fusewire_kernels.interpreter import needs_kernel
from fusewire_protos.catalogue import Attributes, Category, Op
from fusewire_protos.program import Program, ProgramOp, build, encode
from fusewire_protos.shapes import Spec


class OneOpCall(NamedTuple):
    """An op on operands of these specs: what a one-op plan is made for."""

    op: Op
    operands: tuple[Spec, ...]
    attributes: Attributes

    def raw(self) -> bytes:
        """The canonical bytes of the program of this one op."""
        op = ProgramOp(self.op, tuple(range(len(self.operands))), self.attributes)
        return encode(build(self.operands, (), [op], (0,)))

    def result(self) -> Spec:
        op = ProgramOp(self.op, tuple(range(len(self.operands))), self.attributes)
        return build(self.operands, (), [op], (0,)).result_spec(0)


def calls_of(program: Program, *, is_library_exact: bool) -> set[OneOpCall]:
    """Every one-op plan that running the program op by op needs on a device whose array library is exact or not."""
    return {call for call in _primitive_calls_of(program) if needs_kernel(call.op, is_library_exact=is_library_exact)}


def _primitive_calls_of(program: Program) -> Iterator[OneOpCall]:
    for op, operands, attributes in program.ops:
        specs = tuple(program.specs[operand] for operand in operands)
        if op.category is Category.COMPOSITE:
            yield from _primitive_calls_of(expand(op, specs, attributes).program)
        else:
            yield OneOpCall(op, specs, attributes)
