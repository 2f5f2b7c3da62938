"""Reads statistics of the demo's work from the server's HTTP inspection."""

from __future__ import annotations

import time
from typing import Any

from fusewire._transport.inspection import checked_answer, inspect
from fusewire.examples.figures import ServerCount, ServerName

_CLOSED_WITHIN_S = 3.0
_ASK_EVERY_S = 0.05


class Inspection:
    """A server's HTTP inspection, at `address` (HOST:PORT). All methods raise ServerFault or Unauthenticated."""

    def __init__(self, address: str) -> None:
        self._address = address
        with checked_answer(address):
            self._sessions_before = int(self._stats()["sessions"])

    def count(self) -> ServerCount:
        """Returns the totals so far. First waits, at most 3 s, until the sessions begun since `__init__` have ended."""
        stats = self._settled()
        totals, compilation = stats["totals"], stats["totals"]["compilation"]
        return ServerCount(
            ops=totals["ops"],
            launches=totals["launches"],
            rows=totals["rows"],
            submissions=totals["submissions"],
            device_ns=stats["phases"]["device"]["total_ns"],
            plans=compilation["plans"],
            kernels_compiled=compilation["kernels_compiled"],
            donations=stats["memory"]["donations"],
        )

    def describe(self, target: str) -> ServerName:
        """Describes the server's backend. `target` is the server's gRPC address."""
        backend = self._stats()["backend"]
        return ServerName(target, backend["name"], backend["detail"], has_compiler=backend["has_compiler"])

    def _settled(self) -> dict[str, Any]:
        """Returns the statistics after the demo's sessions have ended. Polls, because sessions end after a delay."""
        deadline_s = time.monotonic() + _CLOSED_WITHIN_S
        while True:
            stats = self._stats()
            if stats["sessions"] <= self._sessions_before or time.monotonic() > deadline_s:
                return stats
            time.sleep(_ASK_EVERY_S)

    def _stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = inspect("/v1/stats", self._address, None)
        return stats
