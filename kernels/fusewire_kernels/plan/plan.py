"""A plan: a program compiled for one backend, as plain data that can be sent to another process.

A plan runs for several rows at once. A row is one use of the program: one segment of one session. All that differs
between rows stands in the *slot table*, int64[rows][columns]. Column 0 is the address of the row's arena, in which
interior values lie at fixed offsets; `columns` defines the other columns. A launch runs one kernel for one or more
instances, which are independent equal groups of the program; every instance runs for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fusewire_protos.dtypes import DType

ARENA_COLUMN = 0
ARENA_ALIGNMENT_BYTES = 256


class ArenaColumn(NamedTuple):
    """The address of the row's arena: column 0 and no other."""


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
    """Moves an address by `stride_bytes` times the value of slice start number `start`."""

    start: int
    stride_bytes: int


class ViewColumn(NamedTuple):
    """An address inside the buffer of another column (an input, an output or the arena), moved by slice starts."""

    base_column: int
    byte_offset: int
    terms: tuple[Term, ...]


Column = ArenaColumn | InputColumn | ScalarColumn | ConstantColumn | OutputColumn | ViewColumn


class OperandRef(NamedTuple):
    """An array operand: the address in `column` plus `byte_offset`. A scalar operand: the slot itself, offset 0."""

    column: int
    byte_offset: int


class KernelSource(NamedTuple):
    """A kernel as text in the plan's dialect; `key` is the name of its function."""

    key: str
    text: str


class Division(NamedTuple):
    """Divides an instance into pieces along one dimension of its kernel.

    Size number `dimension` of the launch is the extent of the dimension. A piece takes `steps` of it. One step moves
    operand i of the instance by `moves_bytes[i]`.
    """

    dimension: int
    steps: int
    moves_bytes: tuple[int, ...]


class Launch(NamedTuple):
    """One kernel over its instances; `kernel` is an index into `Plan.kernels`.

    An instance has one operand for each kernel argument: the inputs, then the outputs (a product: a, b, out).
    `division` is None if instances always run whole.
    """

    kernel: int
    sizes: tuple[int, ...]
    instances: tuple[tuple[OperandRef, ...], ...]
    division: Division | None = None


class Donation(NamedTuple):
    """Live result `position` may be written over input `input`, if this run is the last use of the input's value."""

    input: int
    position: int


# About the work that a processor core does in a nanosecond; products are faster.
_OPERATIONS_A_NS, _BYTES_A_NS = 8, 10


class Cost(NamedTuple):
    """Counts of the work of one row, from which the scheduler first estimates the row's time."""

    operations: int
    moved_bytes: int

    @property
    def estimate_ns(self) -> int:
        """Estimated time of a row on a processor core, for use until a time was measured."""
        return self.operations // _OPERATIONS_A_NS + self.moved_bytes // _BYTES_A_NS


@dataclass(frozen=True)
class Plan:
    """A compiled program. `explanation` says in words which ops were fused, and why others were not."""

    kernels: tuple[KernelSource, ...]
    launches: tuple[Launch, ...]
    columns: tuple[Column, ...]
    arena_bytes: int
    donations: tuple[Donation, ...]
    cost: Cost
    explanation: tuple[str, ...]
