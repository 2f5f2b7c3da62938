"""Which ops of a program tier 0 cannot leave to the array library. Pure."""

from __future__ import annotations

from typing import NamedTuple

from fusewire_kernels.expand import expand
from fusewire_kernels.interpreter import converted_first, needs_kernel
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
    found: set[OneOpCall] = set()
    for op, specs, attributes in _distinct_ops(program, is_library_exact=is_library_exact):
        if op.category is Category.COMPOSITE:
            found |= calls_of(expand(op, specs, attributes).program, is_library_exact=is_library_exact)
        elif op.category is Category.MOVE:
            casts = converted_first(op, specs, attributes)
            found |= {OneOpCall(cast.op, (specs[position],), cast.attributes) for position, cast in casts}
        else:
            found.add(OneOpCall(op, specs, attributes))
    return found


def _distinct_ops(program: Program, *, is_library_exact: bool) -> set[tuple[Op, tuple[Spec, ...], Attributes]]:
    """What no library does, or not all of, each once: a loop's body repeats few ops on operands of few specs."""
    specs = program.specs
    looked_into = (Category.COMPOSITE,) if is_library_exact else (Category.COMPOSITE, Category.MOVE)
    wanted = {
        op
        for op in {op for op, _, _ in program.ops}
        if op.category in looked_into or needs_kernel(op, is_library_exact=is_library_exact)
    }
    return {
        (op, tuple([specs[operand] for operand in operands]), attributes)
        for op, operands, attributes in program.ops
        if op in wanted
    }
