"""Joins reports, so that one wake-up of the engine thread brings several of them.

That a few bytes have been written can be told with the run that they were written for. A wake-up for each write would
have the engine thread compute while the device thread needs the interpreter's lock to launch this run.
"""

from __future__ import annotations

from collections.abc import Callable

from fusewire_server.device.orders import Report


class JoinedReports:
    """The reports that the device thread makes itself, in order. The device thread owns this state.

    Other threads pass their reports to `report`.
    """

    def __init__(self, report: Callable[[Report], None]) -> None:
        self.report = report
        self._waiting: list[Report] = []

    def add(self, report: Report) -> None:
        """Passes on a report behind those that wait."""
        self.flush()
        self.report(report)

    def add_deferred(self, report: Report) -> None:
        """Keeps a report until the next one, or until the device thread has no order to act on."""
        self._waiting.append(report)

    def flush(self) -> None:
        """Passes on the reports that wait."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for report in waiting:
                self.report(report)
