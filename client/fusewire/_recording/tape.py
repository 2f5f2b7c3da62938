"""The tape of the recorder in Python: the ops that one thread has recorded, in order.

The compiled recorder keeps the same integers in one array. Here one op is one record, appended by one list operation,
so that a tape is consistent whenever another thread or a signal handler reads it. A record is a tuple of integers, told
apart by their size:

    (signature number, operand, …)      operand ≥ FIRST_HANDLE: the handle of an array
                                        operand < 0: −1 − index of a value (a scalar, or a slice's start)

The handle of a record's result follows from the index of the record, so it is not stored. Only the owning thread
appends. The owning thread also replaces a long tape, once it is sent, by a shorter one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from fusewire_protos.frames import HANDLES_PER_RECORDER, Scalar

FIRST_HANDLE = HANDLES_PER_RECORDER  # recorders are numbered from 1, so every handle is above any signature number

Record = tuple[int, ...]
Integers = npt.NDArray[np.int64]


class Tape:
    """Records, and the values that records refer to. Any thread may read it; the owning thread alone appends."""

    __slots__ = ("origin", "records", "value_origin", "values")

    def __init__(self, origin: int, records: list[Record], value_origin: int, values: list[Scalar]) -> None:
        self.origin = origin  # the number of the first record, less 1; the last record has number origin + len(records)
        self.records = records
        self.value_origin = value_origin  # the index of the first value
        self.values = values

    @property
    def end(self) -> int:
        """Returns the number of the next op."""
        return self.origin + len(self.records) + 1

    def between(self, first: int, end: int) -> list[Record]:
        """Returns the records of the ops numbered first..end−1. Raises IndexError if not all are on the tape."""
        offset = self.origin + 1
        if not offset <= first <= end <= self.end:
            raise IndexError(f"ops {first} to {end} are not all on the tape")
        return self.records[first - offset : end - offset]

    def values_of(self, operands: Integers) -> list[Scalar]:
        """Returns the values that the negative integers among `operands` refer to, in order."""
        values = self.values
        if not values:
            return []
        shift = -1 - self.value_origin
        return [values[shift - operand] for operand in operands[operands < 0].tolist()]

    def without(self, records: int, *, unsent: int) -> Tape:
        """Returns this tape without its first `records` records, and without the values of the ops before `unsent`."""
        operands = chain.from_iterable(self.between(unsent, self.end))
        end_value = self.value_origin + len(self.values)
        first_value = min((-1 - operand for operand in operands if operand < 0), default=end_value)
        values = self.values[first_value - self.value_origin :]
        return Tape(self.origin + records, self.records[records:], first_value, values)


def flatten(records: Sequence[Record]) -> Integers:
    """Returns the integers of all records, concatenated."""
    return np.fromiter(chain.from_iterable(records), np.int64)
