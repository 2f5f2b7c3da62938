"""Defines the units in which credit is counted.

Credit limits the work in flight. Work is in flight from when the client sends it until the device has completed it.
"""

from __future__ import annotations

from typing import NamedTuple


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
