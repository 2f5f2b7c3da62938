"""What is known of a loop's body when its persistent kernel is chosen, and what may stand in the way. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.fusion.updated_arrays import UpdatedPart
from fusewire_kernels.graph.graph import Graph, Operand
from fusewire_kernels.graph.views import Layout
from fusewire_kernels.ir.kernel import ArgumentKind, LoopKernel
from fusewire_kernels.ir.persistent import PersistentKernel, Source
from fusewire_kernels.plan.plan import Donation
from fusewire_protos.programs.program import Program

_MOST_OPERANDS = 64  # each has a bit that tells whether it moves from iteration to iteration


class Persistent(NamedTuple):
    """A persistent kernel and its operands, of which it writes the last `outputs`.

    `sizes` are those of the body. `carried` and `fixed` are numbers of operands (see `PersistentLaunch`). The arrays of
    `updates` must be copied before the first iteration. `follows` are pairs of operands (see `PersistentLaunch`).
    """

    kernel: PersistentKernel
    sizes: tuple[int, ...]
    operands: tuple[Operand, ...]
    outputs: int
    carried: tuple[int, ...]
    fixed: tuple[int, ...]
    updates: tuple[Donation, ...] = ()
    follows: tuple[tuple[int, int], ...] = ()


class NotPersistent(NamedTuple):
    """There is no persistent kernel of a body, and why; the reason is empty if the body is that of no loop."""

    reason: str = ""


class Obstacle(Exception):
    """Says why there is no persistent kernel."""


def require(reason: str, *, is_met: bool) -> None:
    if not is_met:
        raise Obstacle(reason)


def require_few(operands: int) -> None:
    require(f"it has more than {_MOST_OPERANDS} operands", is_met=operands <= _MOST_OPERANDS)


def require_known_places(kernel: LoopKernel) -> None:
    gathers = any(argument.kind is ArgumentKind.GATHERED for argument in kernel.inputs)
    require("it reads at places that it computes", is_met=not gathers)


class WrittenPart(NamedTuple):
    """The place of elements in the buffer of a value, and what writes them."""

    layout: Layout
    source: Source


class LoopBody:
    """Which groups of a body write which values, and what is carried to the next iteration.

    The arrays of `parts` are copied before the first iteration, so that an iteration writes a part of them only.
    """

    def __init__(self, program: Program, graph: Graph, groups: list[Instance], parts: Sequence[UpdatedPart]) -> None:
        needed = [value for value, is_needed in zip(graph.values, graph.is_needed, strict=True) if is_needed]
        changes = [value.target for value in needed if value.after and value.target is not None]
        # Threads do not wait for what others have stored.
        updated = {part.written.value for part in parts}
        is_written_once = all(target.value in updated for target in changes)
        require("it changes a part of an array that it also writes or reads elsewhere", is_met=is_written_once)
        self._program = program
        self._graph = graph
        written = [
            (operand, Source(group, store))
            for group, instance in enumerate(groups)
            for store, operand in enumerate(instance.written())
        ]
        self.written = frozenset([operand.value for operand, _ in written])
        self._parts: dict[int, list[WrittenPart]] = {}
        for operand, source in written:
            self._parts.setdefault(operand.value, []).append(WrittenPart(operand.layout, source))
        self.stored = frozenset(graph.outputs)
        self.updated = {part.source: part.written for part in parts}
        self.follows: dict[tuple[Operand, Operand], None] = {}  # in their order, once each

    def before(self, operand: Operand) -> Source | None:
        """Returns what wrote, in the iteration before, what an operand is in this one. None if it is not carried.

        A part of an updated array is added to `follows`, with the part that an iteration writes: only when the loop
        runs is it known whether these are the same.
        """
        origin = self._program.origins.get(operand.value)  # the inputs of a program are the first values of its graph
        if origin is None:
            return None
        if operand.value in self.updated:
            written = self.updated[operand.value]
            self.follows[operand, written] = None
            return self._parts[written.value][0].source
        require("a value is carried over more than one iteration", is_met=len(origin.initial) == 1)
        is_computed = origin.source >= self._program.first_result
        require("an input takes what another input had in the iteration before", is_met=is_computed)
        position = self._program.live_positions[origin.source - self._program.first_result]
        source = self.now(self._graph.outputs[position])
        assert source is not None, "a live result is computed"
        return source

    def computes(self, value: int) -> bool:
        """Returns whether the loop computes a value, in this iteration or in the one before."""
        return value in self.written or value in self._program.origins

    def is_whole(self, operand: Operand) -> bool:
        """Returns whether an operand is all that was written of a value."""
        is_unmoved = not operand.layout.offset and not operand.layout.moves
        return is_unmoved or operand.value in self.updated

    def require_in_place(self, read: Operand, strides: tuple[int, ...], written: tuple[int, ...]) -> None:
        """Raises unless an operand that moves by `strides` is read at the points at which the same value is written."""
        require("it reads a part of a computed value", is_met=self.is_whole(read))
        require("it reads a computed value at other points than it writes it", is_met=strides == written)

    def now(self, value: int) -> Source | None:
        """Returns what writes a value in this iteration. None if no group does."""
        if value not in self.written:
            return None
        (part, *others) = self._parts[value]
        is_whole = (
            not others and part.layout.is_dense and prod(part.layout.shape) == prod(self._graph.values[value].shape)
        )
        require("several groups write parts of a value that another takes", is_met=is_whole)
        return part.source

    def parts(self, value: int) -> list[WrittenPart]:
        """Returns what writes the parts of a value in this iteration."""
        return self._parts[value]
