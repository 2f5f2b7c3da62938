"""Runs a submission op by op in slices, row by row, on the device thread."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from fusewire_server.device.allocation import Allocation
from fusewire_server.device.device_time import DeviceTime
from fusewire_server.device.memory import DeviceMemory
from fusewire_server.device.orders import FailedRow, Lasts, Report, Run
from fusewire_server.device.tier0 import OpByOp
from fusewire_server.scheduling.time_shares import Progress
from fusewire_server.sessions.session import Row, SessionState

log = logging.getLogger("fusewire.device")

# A run that has used this much time, or that waits, is reported, so that later submissions need not wait for its end.
LASTING_NS = 5_000_000


class SlicedRun:
    """A submission that runs in slices. `used_ns` is the time that the slices took; the device thread adds it up."""

    def __init__(
        self,
        order: Run,
        op_by_op: OpByOp,
        allocation: Allocation,
        memory: DeviceMemory,
        device_time: DeviceTime,
        report: Callable[[Report], None],
    ) -> None:
        """Allocates the results of the rows. A row without memory fails."""
        rows, self.failed, self.spare = allocation.allocate(order.submission)  # `spare`: blocks to give back at the end
        self.order = order
        self.device_time = device_time
        self.used_ns = 0
        self._rows = deque(rows)  # rows that have not ended; the first one may be running
        self._op_by_op = op_by_op
        self._memory = memory
        self._report = report
        self._is_reported = False  # whether `Lasts` has been reported

    @property
    def tenant(self) -> str:
        """Returns the tenant of the current row's session. The run takes turns of that tenant."""
        return (self._rows or self.order.submission.rows)[0].session.tenant

    def go_on(self, until_ns: int) -> Progress:
        progress = self._go_on(until_ns)
        if progress is Progress.WAITS or (self.used_ns >= LASTING_NS and progress is Progress.GOES_ON):
            self._tell_that_it_lasts()
        if progress is Progress.ENDED:
            self._op_by_op.leave()
        return progress

    def _tell_that_it_lasts(self) -> None:
        if not self._is_reported:
            self._is_reported = True
            self._report(Lasts(self.order.number))

    def _go_on(self, until_ns: int) -> Progress:
        """Runs rows until the time is over."""
        while self._rows:
            if not self._go_on_with(self._rows[0], until_ns):
                return Progress.GOES_ON if self._op_by_op.is_under_way else Progress.WAITS
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
        if not self._op_by_op.is_under_way and not self._op_by_op.begin(row, self.order.submission.span(row)):
            return False
        return self._op_by_op.go_on(until_ns)

    def _leave_row(self) -> None:
        self._op_by_op.stop()
        self._rows.popleft()


def _cancelled(row: Row) -> FailedRow:
    return FailedRow(row, "cancelled", "the session has ended")
