"""What a server tells of the work that the demo gave it."""

from __future__ import annotations

import time
from typing import Any

from fusewire._transport.inspection import inspect
from fusewire.examples.figures import ServerCount, ServerName

_CLOSED_WITHIN_S = 3.0
_ASK_EVERY_S = 0.05


class Inspection:
    """The inspection at HOST:PORT of a server. Raises ServerFault or Unauthenticated if it will not tell."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._sessions_before = self._stats()["sessions"]

    def count(self) -> ServerCount:
        """The totals so far, once the sessions begun since the last count have ended."""
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
        """What the server at `target` runs ops on."""
        backend = self._stats()["backend"]
        return ServerName(target, backend["name"], backend["detail"], has_compiler=backend["has_compiler"])

    def peak_bytes(self) -> int:
        """The most that all buffers have taken since the server began."""
        return int(self._settled()["memory"]["peak_bytes"])

    def _settled(self) -> dict[str, Any]:
        """Statistics are published some times a second: those that still show our sessions are not the last."""
        deadline_s = time.monotonic() + _CLOSED_WITHIN_S
        while True:
            stats = self._stats()
            if stats["sessions"] <= self._sessions_before or time.monotonic() > deadline_s:
                return stats
            time.sleep(_ASK_EVERY_S)

    def _stats(self) -> dict[str, Any]:
        return inspect("/v1/stats", self._address, None)
