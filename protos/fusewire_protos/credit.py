"""Defines the units in which credit is counted.

Credit limits the work in flight. Work is in flight from when the client sends it until the device has completed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

from fusewire_protos.frames import Repetition


class Amount(NamedTuple):
    """An amount of work. `bytes` counts the bytes of live results and of uploads that travel inside a frame."""

    ops: int = 0
    bytes: int = 0
    segments: int = 0

    def plus(self, other: Amount) -> Amount:
        return Amount(self.ops + other.ops, self.bytes + other.bytes, self.segments + other.segments)

    def minus(self, other: Amount) -> Amount:
        return Amount(self.ops - other.ops, self.bytes - other.bytes, self.segments - other.segments)

    def fits(self, limit: Amount) -> bool:
        return self.ops <= limit.ops and self.bytes <= limit.bytes and self.segments <= limit.segments


NO_WORK = Amount()


def cost_of(repetition: Repetition, once: Amount, sizes: Sequence[int], credit_ops: int) -> Amount:
    """Returns the credit that a segment takes. A loop of more ops than there is credit for takes the credit for ops.

    `once` is what its program takes without repetition, and `sizes` are the bytes of the program's live results.
    """
    iterations, _, kept, *_ = repetition
    return once if kept is None else Amount(min(once.ops * iterations, credit_ops), sum(map(mul, sizes, kept)), 1)
