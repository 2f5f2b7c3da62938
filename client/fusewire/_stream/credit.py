"""How much a session may have in flight: sent, and not yet completed by the device.

Totals since the session began are kept on both sides; completion comes from the server, cumulatively.
"""

from __future__ import annotations

from fusewire_protos.credit import Amount


class Credit:
    """The account of one session; guarded by the session's lock."""

    def __init__(self, limit: Amount) -> None:
        self._limit = limit
        self.sent = Amount()  # since the session began
        self._completed = Amount()

    @property
    def in_flight(self) -> Amount:
        return self.sent.minus(self._completed)

    @property
    def is_free(self) -> bool:
        """Whether nothing is in flight."""
        return self.sent == self._completed

    def admits(self, cost: Amount) -> bool:
        """Whether `cost` may be sent now. With nothing in flight a single send of any size may."""
        return self.is_free or self.in_flight.plus(cost).fits(self._limit)

    def complete(self, total: Amount) -> None:
        """`total` is what the server has completed since the session began."""
        self._completed = total
