"""A call of one op on operands of given specs, which has a plan of its own. Pure."""

from __future__ import annotations

from typing import NamedTuple

from fusewire_protos.ops.catalogue import Attributes, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import signature_of
from fusewire_protos.programs.program import Program, ProgramOp, build


class OneOpCall(NamedTuple):
    """A primitive op with the specs of its operands. All programs that make equal calls share one plan."""

    op: Op
    operands: tuple[Spec, ...]
    attributes: Attributes

    def program(self) -> Program:
        """Returns the program of this op alone. Its inputs are the operands, scalars included."""
        op = ProgramOp(self.op, tuple(range(len(self.operands))), self.attributes)
        return build(self.operands, (), [op], (0,))

    def result(self) -> Spec:
        """Returns the spec of the result."""
        return signature_of(*self).result
