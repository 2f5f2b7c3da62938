"""The slots of a loop for a persistent kernel, and what the kernel reads and stores in which iteration. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.plan.plan import Column, OutputColumn, PersistentLaunch, ViewColumn

_LEAST_ITERATIONS = 3  # fewer take less time as launches of their own, because a cluster first brings in its operand


class LoopTable(NamedTuple):
    """The slots of several iterations of a loop, for a persistent kernel.

    `slots` is int64[entries][rows][columns]. Row r runs `counts[r]` iterations. The first `first` entries are those of
    the first iterations, and the others are those of the last iterations of each row. Iterations in between need no
    slots, because they read nothing new and their results are not stored. A result is stored in the last `tail`
    iterations, or in all iterations if its position among the live results is in `stored_in_all`. `moving` are the
    columns that are not the same in all entries.
    """

    slots: npt.NDArray[np.int64]
    counts: Sequence[int]
    first: int
    tail: int
    stored_in_all: frozenset[int]
    moving: frozenset[int]

    def why_not(self, launch: PersistentLaunch, most_rows: int) -> str:
        """Returns why a persistent launch of at most so many rows cannot run these iterations or would not pay.

        If it can run them, the text is empty.
        """
        if self.counts[0] < _LEAST_ITERATIONS:
            return f"{self.counts[0]} iterations; a persistent kernel pays from {_LEAST_ITERATIONS} on"
        if len(self.counts) > most_rows:
            return f"{len(self.counts)} rows; with more than {most_rows}, each iteration has launches of its own"
        if any(launch.operands[index].column in self.moving for index in launch.fixed):
            return "an operand that the kernel needs to be the same in all iterations is not"
        if any(self._moves(array.output_column) for array in launch.updated):
            return "an array that the iterations change is kept of several of them, or the loop came before its plan"
        columns = [operand.column for operand in launch.operands]
        if not all(self._follows(columns[read], columns[written]) for read, written in launch.follows):
            return "an iteration reads another part of an array than the one before has written"
        return ""

    def _follows(self, column: int, earlier: int) -> bool:
        """Returns whether a column has in each entry of a row but the first what `earlier` has in the one before."""
        for row, count in enumerate(self.counts):
            slots = self.slots[:count, row]
            if (slots[1:, column] != slots[:-1, earlier]).any():
                return False
        return True

    def _moves(self, column: int) -> bool:
        """Returns whether a column differs between entries, of which some may be left out of `moving`."""
        return bool((self.slots[..., column] != self.slots[0, :, column]).any())


def moving_bits(launch: PersistentLaunch, table: LoopTable) -> int:
    """Returns a bit for each operand that the kernel reads again in each iteration."""
    read = range(len(launch.operands) - launch.outputs)
    again = [index for index in read if index not in launch.carried and launch.operands[index].column in table.moving]
    return sum(1 << index for index in again)


def stored_bits(launch: PersistentLaunch, columns: Sequence[Column], table: LoopTable) -> int:
    """Returns a bit for each store of the kernel that writes in all iterations. `columns` are those of the plan."""
    written = launch.operands[len(launch.operands) - launch.outputs :]
    in_all = [_is_stored_in_all(operand.column, columns[operand.column], table) for operand in written]
    return sum(1 << store for store, is_stored in enumerate(in_all) if is_stored)


def _is_stored_in_all(number: int, column: Column, table: LoopTable) -> bool:
    if isinstance(column, ViewColumn):  # the part of an array that an iteration writes
        return number in table.moving
    return isinstance(column, OutputColumn) and column.position in table.stored_in_all
