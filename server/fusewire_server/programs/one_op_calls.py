"""Finds the ops of a program that tier 0 cannot leave to the array library, because its bits may differ. Pure."""

from __future__ import annotations

from typing import NamedTuple

from fusewire_kernels.ops.composites import expand
from fusewire_kernels.ops.interpreter import converted_first, needs_kernel
from fusewire_protos.ops.catalogue import Attributes, Category, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import Signature, signature_of
from fusewire_protos.programs.codec import encode
from fusewire_protos.programs.program import Program, ProgramOp, build


class OneOpCall(NamedTuple):
    """An op with the specs of its operands. A one-op plan computes one such call."""

    op: Op
    operands: tuple[Spec, ...]
    attributes: Attributes

    def raw(self) -> bytes:
        """Returns the canonical bytes of the program of this one op."""
        op = ProgramOp(self.op, tuple(range(len(self.operands))), self.attributes)
        return encode(build(self.operands, (), [op], (0,)))

    def result(self) -> Spec:
        return signature_of(*self).result


class OneOpCalls:
    """The calls that need one-op plans when a program runs op by op. Each call of `look_on` looks into one op."""

    def __init__(self, program: Program, *, is_library_exact: bool) -> None:
        """`is_library_exact`: whether the device's array library computes the same bits as our kernels."""
        self.found: list[OneOpCall] = []
        self._known: set[OneOpCall] = set()
        self._signatures = iter(program.distinct)
        self._is_library_exact = is_library_exact

    def look_on(self) -> bool:
        """Adds the calls of the next op to `found`. Returns False if no op is left."""
        following = next(self._signatures, None)
        if following is None:
            return False
        calls = _calls_of(following, is_library_exact=self._is_library_exact)
        self.found += calls - self._known
        self._known |= calls
        return True


def calls_of(program: Program, *, is_library_exact: bool) -> set[OneOpCall]:
    """Returns all of a program's calls at once."""
    calls = OneOpCalls(program, is_library_exact=is_library_exact)
    while calls.look_on():
        pass
    return set(calls.found)


def _calls_of(signature: Signature, *, is_library_exact: bool) -> set[OneOpCall]:
    """Returns the calls inside one op that need one-op plans; none if the array library computes the whole op."""
    op, specs, attributes = signature.op, signature.operands, signature.attributes
    if op.category is Category.COMPOSITE:
        return calls_of(expand(op, specs, attributes).program, is_library_exact=is_library_exact)
    if op.category is Category.MOVE and not is_library_exact:
        casts = converted_first(op, specs, attributes)
        return {OneOpCall(cast.op, (specs[position],), cast.attributes) for position, cast in casts}
    if needs_kernel(op, is_library_exact=is_library_exact):
        return {OneOpCall(op, specs, attributes)}
    return set()
