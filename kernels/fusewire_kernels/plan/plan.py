"""A plan: a program compiled for one backend, as plain data that crosses a process border.

A plan is run for several rows at once (a row is one instance of the program: one session's segment). What differs
between rows stands in the *slot table*, int64[rows][columns]. Column 0 is the address of the row's arena, in which
interior values live at fixed offsets; the other columns are what `columns` says. A launch runs one kernel for one or
more instances (independent equal groups of the program); every instance runs for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fusewire_protos.dtypes import DType

ARENA_COLUMN = 0
ARENA_ALIGNMENT_BYTES = 256


class ArenaColumn(NamedTuple):
    """The address of the row's arena. Always column 0, and only there."""


class InputColumn(NamedTuple):
    """The address of input number `input`."""

    input: int


class ScalarColumn(NamedTuple):
    """The bits of scalar number `scalar` in `dtype`, in the low bytes."""

    scalar: int
    dtype: DType


class ConstantColumn(NamedTuple):
    """The bits of a number that the program implies, such as the count behind a mean, in `dtype`, in the low bytes."""

    value: int | float
    dtype: DType


class OutputColumn(NamedTuple):
    """The address of live result number `position` (an index into the program's `live`)."""

    position: int


class Term(NamedTuple):
    """Slice start number `start` moves an address by `stride_bytes` each."""

    start: int
    stride_bytes: int


class ViewColumn(NamedTuple):
    """An address inside another column's buffer (an input, an output or the arena), moved by slice starts."""

    base_column: int
    byte_offset: int
    terms: tuple[Term, ...]


Column = ArenaColumn | InputColumn | ScalarColumn | ConstantColumn | OutputColumn | ViewColumn


class OperandRef(NamedTuple):
    """An array operand: the address in `column` plus `byte_offset`. A scalar operand: the slot itself, offset 0."""

    column: int
    byte_offset: int


class KernelSource(NamedTuple):
    """A kernel as text of the plan's dialect; `key` is the name of its function."""

    key: str
    text: str


class Division(NamedTuple):
    """How an instance may be run in pieces. Size number `dimension` is an extent, of which a piece takes so many
    `steps`; a step moves each of its operands by `moves_bytes`.
    """

    dimension: int
    steps: int
    moves_bytes: tuple[int, ...]


class Launch(NamedTuple):
    """One kernel over its instances; `kernel` is an index into `Plan.kernels`.

    An instance has one operand for each kernel argument: the inputs, then the outputs (a product: a, b, out).
    `division` is None where it runs whole.
    """

    kernel: int
    sizes: tuple[int, ...]
    instances: tuple[tuple[OperandRef, ...], ...]
    division: Division | None = None


class Donation(NamedTuple):
    """Live result `position` may be written over input `input` if that dies here and has no other reader."""

    input: int
    position: int


# About what a processor does in a nanosecond; products do more.
_OPERATIONS_A_NS, _BYTES_A_NS = 8, 10


class Cost(NamedTuple):
    """What a row of the plan does, by count: the scheduler's first estimate of its time."""

    operations: int
    moved_bytes: int

    @property
    def estimate_ns(self) -> int:
        """How long that may take a processor, so far as nothing was measured."""
        return self.operations // _OPERATIONS_A_NS + self.moved_bytes // _BYTES_A_NS


@dataclass(frozen=True)
class Plan:
    """A compiled program. `explanation` says in words what was fused with what, and why not."""

    kernels: tuple[KernelSource, ...]
    launches: tuple[Launch, ...]
    columns: tuple[Column, ...]
    arena_bytes: int
    donations: tuple[Donation, ...]
    cost: Cost
    explanation: tuple[str, ...]
