"""Which ops of a program tier 0 cannot leave to the array library. Pure."""

from __future__ import annotations

from collections.abc import Iterator
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


class Calls:
    """The one-op plans that running a program op by op needs: found as far as they are looked for, and once."""

    def __init__(self, program: Program, *, is_library_exact: bool) -> None:
        """`is_library_exact`: whether the device's array library is."""
        self.found: list[OneOpCall] = []
        self._known: set[OneOpCall] = set()
        self._ops = _distinct_ops(program, is_library_exact=is_library_exact)
        self._is_library_exact = is_library_exact

    def look_on(self) -> bool:
        """Looks into one more op; False if there is none."""
        following = next(self._ops, None)
        if following is None:
            return False
        new = _calls_of_op(*following, is_library_exact=self._is_library_exact) - self._known
        self._known |= new
        self.found += new
        return True


def calls_of(program: Program, *, is_library_exact: bool) -> set[OneOpCall]:
    """All of a program's calls at once."""
    calls = Calls(program, is_library_exact=is_library_exact)
    while calls.look_on():
        pass
    return set(calls.found)


def _calls_of_op(op: Op, specs: tuple[Spec, ...], attributes: Attributes, *, is_library_exact: bool) -> set[OneOpCall]:
    if op.category is Category.COMPOSITE:
        return calls_of(expand(op, specs, attributes).program, is_library_exact=is_library_exact)
    if op.category is Category.MOVE:
        casts = converted_first(op, specs, attributes)
        return {OneOpCall(cast.op, (specs[position],), cast.attributes) for position, cast in casts}
    return {OneOpCall(op, specs, attributes)}


def _distinct_ops(program: Program, *, is_library_exact: bool) -> Iterator[tuple[Op, tuple[Spec, ...], Attributes]]:
    """What no library does, or not all of, each once: a loop's body repeats few ops on operands of few specs."""
    specs, seen = program.specs, set()
    wanted = {
        op
        for op in {op for op, _, _ in program.ops}
        if op.category in _looked_into(is_library_exact=is_library_exact)
        or needs_kernel(op, is_library_exact=is_library_exact)
    }
    for op, operands, attributes in program.ops:
        if op in wanted:
            each = (op, tuple([specs[operand] for operand in operands]), attributes)
            if each not in seen:
                seen.add(each)
                yield each


def _looked_into(*, is_library_exact: bool) -> tuple[Category, ...]:
    return (Category.COMPOSITE,) if is_library_exact else (Category.COMPOSITE, Category.MOVE)
