"""Counts the memory that a program's intermediate values and results take when it runs op by op. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from fusewire_kernels.ops.composites import expand
from fusewire_protos.ops.catalogue import Attributes, Category, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import Signature
from fusewire_protos.programs.program import Program, ProgramOp


def intermediate_bytes(program: Program) -> int:
    """Returns the largest number of bytes that all values take at one time.

    Live results count, and so do the copies that ops make: an op first copies each operand that is not in C order.
    A value counts until its last use, and the use of a view is a use of the value that the view shows. Memory that the
    array library uses inside an op does not count.
    """
    storage = _Storage(program)
    last_use = storage.last_uses()
    held_bytes = peak_bytes = 0
    for index, op in enumerate(program.ops):
        number = program.first_result + index
        own_bytes = storage.own_bytes(number)
        within = _within(program.signatures[index])
        peak_bytes = max(peak_bytes, held_bytes + max(own_bytes + storage.copied_bytes(op), within))
        held_bytes += own_bytes
        ending = {storage.owners[operand] for operand in (*op.operands, number)}
        held_bytes -= sum(storage.own_bytes(owner) for owner in ending if last_use[owner] == index)
    live = [program.first_result + index for index in program.live]
    return max(peak_bytes, held_bytes + sum(storage.bytes_of(number) for number in live if not storage.is_own(number)))


def most_intermediate_bytes(program: Program) -> int:
    """Returns an upper bound of `intermediate_bytes`, in a tenth of the time.

    The bound assumes that no value is freed and that every value is copied.
    """
    composites = (each for each in program.distinct if each.op.category is Category.COMPOSITE)
    within = max(map(_within, composites), default=0)
    return 2 * program.all_bytes + within


class _Storage:
    """Knows which value owns the memory of each operand number: `owners[number]` is the number of the owner.

    A view has the number of another value there; any other value has its own number.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self.owners = [*range(program.first_result)]
        self._is_dense = [True] * program.first_result  # whether the value is in C order, so that no op copies it first
        for op in program.ops:
            self._place(op)

    def _place(self, op: ProgramOp) -> None:
        is_view = op.op.category is Category.VIEW
        source = op.operands[0] if op.operands else 0
        # A reshape of a value that is not in C order copies the value.
        is_shown = is_view and (op.op.name != "reshape" or self._is_dense[source])
        self.owners.append(self.owners[source] if is_shown else len(self.owners))
        self._is_dense.append(not is_view or op.op.name == "reshape")

    def is_own(self, number: int) -> bool:
        return number >= self._program.first_result and self.owners[number] == number

    def bytes_of(self, number: int) -> int:
        return self._program.specs[number].size_bytes

    def own_bytes(self, number: int) -> int:
        """Returns the bytes that a value adds to memory.

        An input adds 0 bytes because it exists already; a view adds 0 bytes because it shows another value.
        """
        return self.bytes_of(number) if self.is_own(number) else 0

    def copied_bytes(self, op: ProgramOp) -> int:
        if op.op.category is Category.VIEW:
            return 0
        return sum(self.bytes_of(operand) for operand in set(op.operands) if not self._is_dense[operand])

    def last_uses(self) -> dict[int, int]:
        """Returns for each owner the index of the last op that needs the owner's memory.

        If a live result shows that memory, the index is the number of ops.
        """
        return dict(self._uses())

    def _uses(self) -> Iterator[tuple[int, int]]:
        first = self._program.first_result
        for index, op in enumerate(self._program.ops):
            for operand in (*op.operands, first + index):
                yield self.owners[operand], index
        for index in self._program.live:
            yield self.owners[first + index], len(self._program.ops)


def _within(signature: Signature) -> int:
    """Returns the peak bytes of the values inside a composite op, the op's result included; 0 for any other op."""
    if signature.op.category is not Category.COMPOSITE:
        return 0
    return _expanded_bytes(signature.op, signature.operands, signature.attributes)


@lru_cache(1024)  # because a loop's body repeats few ops on operands of few specs
def _expanded_bytes(op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> int:
    return intermediate_bytes(expand(op, operands, attributes).program)
