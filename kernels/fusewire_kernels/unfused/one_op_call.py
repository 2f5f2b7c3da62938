"""A call of one op on operands of given specs, which has a plan of its own. Pure."""

from __future__ import annotations

from typing import NamedTuple

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import signature_of
from fusewire_protos.programs.program import Program, ProgramOp, build

_BITS = {dtype.itemsize_bytes: dtype for dtype in dtypes.UNSIGNED}


class OneOpCall(NamedTuple):
    """A primitive op with the specs of its operands. All programs that make equal calls share one plan."""

    op: Op
    operands: tuple[Spec, ...]
    attributes: Attributes

    def program(self) -> Program:
        """Returns the program of this op alone. Its inputs are the operands, scalars included."""
        op = ProgramOp(self.op, tuple(range(len(self.operands))), self.attributes)
        return build(self.operands, (), [op], (0,))

    def of_bits(self) -> OneOpCall:
        """Returns the call with copied elements seen as integers of their length.

        It copies the same bits. So copies of all dtypes of one length share their kernels.
        """
        copied = range(len(self.operands))[: self.op.copied_operands]
        if not copied:
            return self
        bits = _BITS[self.operands[0].dtype.itemsize_bytes]
        operands = enumerate(self.operands)
        return self._replace(
            operands=tuple([spec._replace(dtype=bits) if number in copied else spec for number, spec in operands])
        )

    def result(self) -> Spec:
        """Returns the spec of the result."""
        return signature_of(*self).result
