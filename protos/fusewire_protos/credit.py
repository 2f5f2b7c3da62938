"""The units of credit, which bounds the work in flight: sent, and not completed by the device."""

from __future__ import annotations

from typing import NamedTuple


class Amount(NamedTuple):
    """An amount of work. `bytes` are those of live results and inline uploads."""

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
