"""Runs a submission in slices, row by row, on the device thread."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

from fusewire_kernels.devices.base import Block
from fusewire_server.device.allocation import Allocation
from fusewire_server.device.device_time import DeviceTime
from fusewire_server.device.memory import DeviceMemory
from fusewire_server.device.orders import FailedRow, Lasts, Report, Run
from fusewire_server.scheduling.unfinished_orders import Progress
from fusewire_server.sessions.session import Row, SessionState

log = logging.getLogger("fusewire.device")

# A run that has used this much time, or that waits, is reported, so that later submissions need not wait for its end.
LASTING_NS = 5_000_000


class Way(Protocol):
    """A way to compute rows of a program: one row after another, and each row in several slices."""

    @property
    def is_foreign(self) -> bool:
        """Tells whether a slice is one foreign call, which releases the interpreter lock."""

    @property
    def is_under_way(self) -> bool:
        """Tells whether a row has begun and has not been stopped."""

    def begin(self, row: Row, span: range) -> bool:
        """Begins the iterations `span` of a row that has its blocks, or goes on with those that are left.

        Returns False if the row must wait for other runs. Raises MemoryError.
        """

    def go_on(self, until_ns: int) -> bool:
        """Runs one slice. Returns whether the row has ended."""

    def stop(self) -> None:
        """Gives back the memory that a running row took beside its blocks. Results already written stay written."""

    def leave(self) -> None:
        """Notes that no more rows will come."""


class SlicedRun:
    """A submission that runs in slices. `used_ns` is the time that the slices took; the device thread adds it up."""

    def __init__(
        self, order: Run, way: Way, memory: DeviceMemory, device_time: DeviceTime, report: Callable[[Report], None]
    ) -> None:
        self.order = order
        self.device_time = device_time
        self.failed: list[FailedRow] = []
        self.spare: list[Block] = []  # blocks to give back at the end
        self.used_ns = 0
        self.is_allocated = False
        self._rows: deque[Row] = deque()  # rows that have not ended; the first one may be running
        self._way = way
        self._memory = memory
        self._report = report
        self._is_reported = False  # whether `Lasts` has been reported

    @property
    def is_foreign(self) -> bool:
        """Tells whether a slice is one foreign call, which releases the interpreter lock."""
        return self._way.is_foreign

    @property
    def is_under_way(self) -> bool:
        """Tells whether a row of the submission has begun and has not ended."""
        return self._way.is_under_way

    @property
    def is_unwanted(self) -> bool:
        """Tells whether all sessions of the submission have ended."""
        return all(row.session.state is SessionState.CLOSED for row in self.order.submission.rows)

    @property
    def tenant(self) -> str:
        """Returns the tenant of the current row's session. The run takes turns of that tenant."""
        return (self._rows or self.order.submission.rows)[0].session.tenant

    def allocate(self, allocation: Allocation) -> None:
        """Allocates the results of the rows; a row without memory fails. Called before `go_on`."""
        rows, self.failed, self.spare = allocation.allocate(self.order.submission)
        self._rows.extend(rows)
        self.is_allocated = True

    def cancel(self) -> None:
        """Fails all rows before they have any memory."""
        submission = self.order.submission
        self.failed = [_cancelled(row) for row in submission.rows]
        for row, donated in zip(submission.rows, submission.donated, strict=True):
            self._memory.release(tuple([row.inputs[number] for number, _ in donated]))
        self.is_allocated = True

    def go_on(self, until_ns: int) -> Progress:
        progress = self._go_on(until_ns)
        if progress is Progress.WAITS or (self.used_ns >= LASTING_NS and progress is Progress.GOES_ON):
            self.tell_that_it_lasts()
        if progress is Progress.ENDED:
            self._way.leave()
        return progress

    def tell_that_it_lasts(self) -> None:
        if not self._is_reported:
            self._is_reported = True
            self._report(Lasts(self.order.number))

    def _go_on(self, until_ns: int) -> Progress:
        """Runs rows until the time is over.

        Stops after each row if a slice is one foreign call, because another run may get the arena then.
        """
        while self._rows:
            if not self._go_on_with(self._rows[0], until_ns):
                return Progress.GOES_ON if self._way.is_under_way else Progress.WAITS
            if self._rows and self._way.is_foreign:
                return Progress.GOES_ON
        return Progress.ENDED

    def _go_on_with(self, row: Row, until_ns: int) -> bool:
        """Runs a slice of the row. Returns whether the row has ended.

        An exception of the array library fails only this row, because rows of other sessions must not fail with it.
        """
        try:
            if row.session.state is SessionState.CLOSED:
                failure = _cancelled(row)
            elif not self._compute(row, until_ns):
                return False
            else:
                self._leave_row()
                return True
        except MemoryError as error:
            failure = FailedRow(row, "out_of_memory", str(error) or "the device has no memory for intermediate values")
        except Exception as error:
            log.exception("a row that went on in slices failed")
            failure = FailedRow(row, "server_fault", f"running it in slices failed: {type(error).__name__}")
        self._leave_row()
        self.failed.append(failure)
        self._memory.release(tuple(row.outputs))
        return True

    def _compute(self, row: Row, until_ns: int) -> bool:
        if not self._way.is_under_way and not self._way.begin(row, self.order.submission.span(row)):
            return False
        return self._way.go_on(until_ns)

    def _leave_row(self) -> None:
        self._way.stop()
        self._rows.popleft()


def _cancelled(row: Row) -> FailedRow:
    return FailedRow(row, "cancelled", "the session has ended")
