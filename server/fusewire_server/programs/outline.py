"""Keeps of a program what the failures of its results need: which results are live, and the names of its ops. Pure.

An outline takes a fraction of the program's memory, so failures may keep it after the program has been forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_protos.programs.program import Integers, Program


class Outline(NamedTuple):
    """Which results of a program are live, and the names of its ops: none for bytes that are no program."""

    live: int  # bit i stands for result i
    op_names: tuple[str, ...] = ()  # of distinct signatures
    signature_numbers: Integers | None = None  # of each op

    @classmethod
    def of(cls, program: Program) -> Outline:
        names = tuple([signature.op.name for signature in program.distinct])
        return cls(bits_of(program.live), names, program.signature_numbers)

    @property
    def width(self) -> int:
        """One more than the index of the last live result, or 0 if there is none."""
        return self.live.bit_length()

    def position_of(self, index: int) -> int | None:
        """Returns the position of a result among the live results, or None if it is not one of them."""
        if not 0 <= index < self.width or not self.live >> index & 1:
            return None
        return (self.live & (1 << index) - 1).bit_count()

    def op_name(self, index: int) -> str:
        """Returns the name of an op, or an empty text if it is unknown."""
        return "" if self.signature_numbers is None else self.op_names[int(self.signature_numbers[index])]


def bits_of(indices: npt.ArrayLike, most: int | None = None) -> int:
    """Returns an integer in which bit i is set if `indices` has i, and i is less than `most`."""
    wanted = np.asarray(indices, np.int64)
    if most is not None:
        wanted = wanted[wanted < most]
    is_wanted = np.zeros(int(wanted.max(initial=-1)) + 1, bool)
    is_wanted[wanted] = True
    return int.from_bytes(np.packbits(is_wanted, bitorder="little").tobytes(), "little")


ONE_RESULT = Outline(1)
