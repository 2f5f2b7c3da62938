"""A plan: a program compiled for one backend, as plain data that can be sent to another process.

A plan runs for several rows at once. A row is one use of the program: one segment of one session. The *slot table*,
int64[iterations][rows][columns], holds everything that differs between rows, and between the iterations of a row.
Column 0 is the address of the row's arena. The arena holds the row's interior values at fixed offsets. `Plan.columns`
says what each column holds.

A launch runs one kernel for one or more instances. Each instance is one group of the program's operations. The
instances of a launch compute the same thing on different operands, and do not depend on each other. Every instance
runs for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fusewire_protos.ops.dtypes import DType
from fusewire_protos.programs.records import NO_RECORDS, Records

ARENA_COLUMN = 0
ARENA_ALIGNMENT_BYTES = 256
# A launch of more rows runs the kernels of a launch of so many. So a plan needs none that only more rows would run.
ROWS_THAT_CHOOSE = 32


class ArenaColumn(NamedTuple):
    """Holds the address of the row's arena. Only column 0 is of this kind."""


class InputColumn(NamedTuple):
    """Holds the address of input number `input`."""

    input: int


class ScalarColumn(NamedTuple):
    """Holds the bits of scalar number `scalar`, converted to `dtype`, in the low bytes of the slot."""

    scalar: int
    dtype: DType


class ConstantColumn(NamedTuple):
    """Holds the bits of a constant, converted to `dtype`, in the low bytes of the slot.

    The program implies the constant, such as the element count by which a mean divides.
    """

    value: int | float
    dtype: DType


class OutputColumn(NamedTuple):
    """Holds the address of live result number `position` (an index into the program's `live`)."""

    position: int


class Term(NamedTuple):
    """Moves an address by `stride_bytes` times the value of slice start number `start`."""

    start: int
    stride_bytes: int


class ViewColumn(NamedTuple):
    """Holds an address inside the buffer of another column: an input, an output or the arena.

    The address is that of `base_column`, plus `byte_offset`, plus what `terms` add for the slice starts of the row.
    """

    base_column: int
    byte_offset: int
    terms: tuple[Term, ...]


Column = ArenaColumn | InputColumn | ScalarColumn | ConstantColumn | OutputColumn | ViewColumn


class OperandRef(NamedTuple):
    """Says where a kernel finds one operand.

    An array operand lies at the address in `column` plus `byte_offset`. A scalar operand is the slot of `column`
    itself, and its `byte_offset` is 0.
    """

    column: int
    byte_offset: int


class KernelSource(NamedTuple):
    """A kernel as text in the plan's dialect, or one size of tile of it; `key` is the name of its function."""

    key: str
    text: str


class Launch(NamedTuple):
    """Runs one kernel for all its instances; `kernel` is the index of its first source in `Plan.kernels`.

    An instance has one operand for each kernel argument: first the inputs, then the outputs. So a matrix product has
    the operands a, b, out.
    """

    kernel: int
    sizes: tuple[int, ...]
    instances: tuple[tuple[OperandRef, ...], ...]


class UpdatedArray(NamedTuple):
    """An array of which each iteration of a loop writes a part.

    The array is in the memory that `output_column` names in all iterations. If `input_column` names another memory in
    the first one, all of it must be copied from there before.
    """

    input_column: int
    output_column: int
    size_bytes: int


class PersistentLaunch(NamedTuple):
    """Runs all iterations of a loop in one launch of one kernel.

    `kernel` is an index into `Plan.kernels`. The last `outputs` of its operands are written, and those with the indices
    `carried` are read in the first iteration only. The operands `fixed` must be the same in all iterations: those by
    which products multiply. A row takes `blocks` blocks of `threads` threads. They are those of `clusters` clusters; if
    this is 0, they need no device with clusters. If more clusters than `most_in_turn` have to follow one another,
    launches for each iteration are faster; if this is 0, they never are. The first operand of each pair of `follows`
    must be, in each iteration but the first, where the second was in the one before.
    """

    kernel: int
    sizes: tuple[int, ...]
    operands: tuple[OperandRef, ...]
    outputs: int
    carried: tuple[int, ...]
    fixed: tuple[int, ...]
    blocks: int
    threads: int
    shared_bytes: int
    clusters: int
    most_in_turn: int
    updated: tuple[UpdatedArray, ...] = ()
    follows: tuple[tuple[int, int], ...] = ()

    def most_rows(self, clusters_at_once: int) -> int | None:
        """Returns how many rows a launch should have on a device that runs so many clusters at once.

        Returns None if it is any number.
        """
        return self.most_in_turn * clusters_at_once // self.clusters if self.most_in_turn else None


class Donation(NamedTuple):
    """Says that live result `position` may be written over input `input`, if the input's value dies in this row."""

    input: int
    position: int


# One processor core does about this much work in a nanosecond. Matrix products run faster than this.
_OPERATIONS_A_NS, _BYTES_A_NS = 8, 10


class Cost(NamedTuple):
    """Counts the work of one row. The scheduler estimates the row's time from the counts until a time was measured."""

    operations: int
    moved_bytes: int

    @property
    def estimate_ns(self) -> int:
        """Returns the estimated time of one row on one processor core."""
        return self.operations // _OPERATIONS_A_NS + self.moved_bytes // _BYTES_A_NS


@dataclass(frozen=True)
class Plan:
    """A compiled program. `records` say what became of each op, and why ops are not computed together.

    `updates` are carried results of a loop that are what was carried, of which some elements are changed. If such a
    result has the memory of the input, all else of it stays where it is.
    `persistent` is another way to run iterations of a loop. It is None if they can run launch by launch only.
    """

    kernels: tuple[KernelSource, ...]
    launches: tuple[Launch, ...]
    columns: tuple[Column, ...]
    arena_bytes: int
    donations: tuple[Donation, ...]
    cost: Cost
    records: Records = NO_RECORDS
    persistent: PersistentLaunch | None = None
    updates: tuple[Donation, ...] = ()
