"""Limits how much work a session has in flight. Work is in flight from its sending until the device has completed it.

Client and server count totals since the session began. The server reports the total of the completed work.
"""

from __future__ import annotations

from fusewire_protos.credit import Amount
from fusewire_protos.v1 import fusewire_pb2 as wire


def amount_of(message: wire.Credit | wire.Completed) -> Amount:
    """Returns the amount that a message of the server tells."""
    return Amount(message.ops, message.bytes, message.segments)


class Credit:
    """The credit of one session, guarded by the session's lock."""

    def __init__(self, limit: Amount) -> None:
        self.limit = limit
        self.sent = Amount()  # since the session began
        self._completed = Amount()

    @property
    def in_flight(self) -> Amount:
        return self.sent.minus(self._completed)

    @property
    def is_free(self) -> bool:
        """Whether nothing is in flight."""
        return self.sent == self._completed

    def has_completed(self, sent: Amount) -> bool:
        """Whether all work is completed up to a total of what was sent."""
        return sent.fits(self._completed)

    def admits(self, cost: Amount) -> bool:
        """Whether work of this cost may be sent now. While nothing is in flight, work of any cost may be sent."""
        sent, completed, limit = self.sent, self._completed, self.limit
        return sent == completed or (
            sent.ops - completed.ops + cost.ops <= limit.ops
            and sent.bytes - completed.bytes + cost.bytes <= limit.bytes
            and sent.segments - completed.segments + cost.segments <= limit.segments
        )

    def complete(self, total: Amount) -> None:
        """Notes the `total` that the server has completed since the session began."""
        self._completed = total
