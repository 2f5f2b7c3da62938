"""A tape: the ops that one thread has recorded, in order.

One op is one record, appended in one act, so that a tape is whole whenever another thread or a signal handler
looks at it. A record is a tuple of integers, told apart by their size:

    (signature number, operand, …)      operand ≥ FIRST_HANDLE: the handle of an array
                                        operand < 0: −1 − index of a value (a scalar, or a slice's start)

The handle of a record's result is its place on the tape, so none is stored, and none can be torn from its record.
Only the owning thread appends; it also swaps in a fresh tape when a long one has been sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from fusewire_protos.frames import HANDLES_PER_RECORDER, Scalar

FIRST_HANDLE = HANDLES_PER_RECORDER  # recorders are numbered from 1, so that no handle is as small as a signature

Record = tuple[int, ...]
Integers = npt.NDArray[np.int64]


class Tape:
    """Records and the values they refer to. Read by any thread, appended to by its owner alone."""

    __slots__ = ("origin", "records", "value_origin", "values")

    def __init__(self, origin: int, records: list[Record], value_origin: int, values: list[Scalar]) -> None:
        self.origin = origin  # the number before the first record's: a new record's is origin + len(records)
        self.records = records
        self.value_origin = value_origin  # the index of the first value
        self.values = values

    @property
    def end(self) -> int:
        """The number of the next op."""
        return self.origin + len(self.records) + 1

    def between(self, first: int, end: int) -> list[Record]:
        """The records of the ops numbered first..end−1."""
        offset = self.origin + 1
        return self.records[first - offset : end - offset]

    def values_of(self, operands: Integers) -> list[Scalar]:
        """The values that the negative ones among `operands` refer to, in order."""
        values = self.values
        if not values:
            return []
        shift = -1 - self.value_origin
        return [values[shift - operand] for operand in operands[operands < 0].tolist()]

    def without(self, records: int, *, unsent: int) -> Tape:
        """This tape without its first `records`, and without the values of ops numbered below `unsent`."""
        operands = chain.from_iterable(self.between(unsent, self.end))
        end_value = self.value_origin + len(self.values)
        first_value = min((-1 - operand for operand in operands if operand < 0), default=end_value)
        values = self.values[first_value - self.value_origin :]
        return Tape(self.origin + records, self.records[records:], first_value, values)


def flatten(records: Sequence[Record]) -> Integers:
    """The integers of all records behind one another."""
    return np.fromiter(chain.from_iterable(records), np.int64)


def places_of_signatures(flat: Integers) -> Integers:
    """Where each record begins among the integers of records."""
    is_signature = flat.view(np.uint64) < FIRST_HANDLE  # a negative one is large without its sign
    return is_signature.nonzero()[0]
