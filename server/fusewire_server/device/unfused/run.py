"""Runs a submission op by op in slices, row by row, because its program has no plan yet. Device thread."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.errors import OutOfMemory
from fusewire_protos.in_steps import finished
from fusewire_server.device.device_time import DeviceTime
from fusewire_server.device.memory.allocation import NO_INPUT, Allocation
from fusewire_server.device.memory.device_memory import DeviceMemory
from fusewire_server.device.orders import FailedRow, Lacks, Load, NoKernel, Report, Run, RunIsLong
from fusewire_server.device.unfused.iteration import Iteration
from fusewire_server.device.unfused.one_ops import OneOps
from fusewire_server.device.unfused.program import UnfusedProgram
from fusewire_server.programs.dependent_results import dependent_ops, first_failed
from fusewire_server.scheduling.time_shares import Progress
from fusewire_server.sessions.iterations import first_uses
from fusewire_server.sessions.session import Row, SessionState

log = logging.getLogger("fusewire.device")

# A run that has used this much time, or that waits, is reported, so that later submissions need not wait for its end.
LASTING_NS = 5_000_000
# How often in turn a row begins an iteration again because values need the memory. Then they leave it none to end.
MOST_STOPS = 100


class UnfusedRun:
    """A submission that runs in slices. `used_ns` is the time that the slices took; the device thread adds it up."""

    def __init__(
        self,
        order: Run,
        unfused: UnfusedProgram,
        one_ops: OneOps,
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
        self._unfused = unfused
        self._one_ops = one_ops
        self._memory = memory
        self._temporaries = memory.begin_run(self._give_way)
        self._report = report
        self._is_reported = False  # whether `RunIsLong` has been reported
        self._preparing: Iterator[None] | None = None
        self._lacking: set[OneOpCall] = set()  # calls whose kernels were missing, and of which there is no news since
        # The following fields belong to the first row.
        self._iteration: Iteration | None = None
        self._iterations = 0  # that have been computed
        self._skipped: frozenset[int] | None = None  # ops that do not run; None before the row has begun
        self._stops = 0  # of its current iteration
        self._waits_for_memory = False

    @property
    def tenant(self) -> str:
        """Returns the tenant of the current row's session. The run takes turns of that tenant."""
        return next(iter(self._rows or self.order.submission.spans)).session.tenant

    def go_on(self, until_ns: int) -> Progress:
        progress = self._go_on(until_ns)
        if progress is Progress.ENDED:
            self._memory.end_run(self._temporaries)
        elif progress is not Progress.GOES_ON or self.used_ns >= LASTING_NS:
            self._report_long_run()
        if progress is Progress.LACKS_KERNELS:
            sessions = frozenset([row.session for row in self._rows])
            self._report(Lacks(frozenset(self._lacking), sessions))
        return progress

    def goes_on_after(self, news: Load | NoKernel) -> bool:
        """Returns whether this run, which lacks kernels, goes on now that some have come or will never come.

        It looks again once it lacks no others, because looking takes time for each. If the session of a row has ended,
        the run goes on at once, to give up the row.
        """
        match news:
            case Load(OneOpCall() as call):
                self._lacking.discard(call)
            case NoKernel(call, refusal) if refusal:
                self._lacking.discard(call)
        return not self._lacking or any(row.session.state is SessionState.CLOSED for row in self._rows)

    def give_up(self) -> None:
        """Fails all rows that have not ended."""
        while self._rows:
            self._fail_row(self._rows[0], "cancelled", "the server has ended")

    def _report_long_run(self) -> None:
        if not self._is_reported:
            self._is_reported = True
            self._report(RunIsLong(self.order.number))

    def _go_on(self, until_ns: int) -> Progress:
        """Runs rows until the time is over."""
        for row in [row for row in self._rows if row.session.state is SessionState.CLOSED]:
            self._fail_row(row, "cancelled", "the session has ended")
        while self._rows:
            progress = self._go_on_with(self._rows[0], until_ns)
            if progress is not None:
                return progress
        return Progress.ENDED

    def _prepare(self, until_ns: int) -> bool:
        """Prepares the program until the time is over. Returns whether it is ready.

        If it is not, and `_preparing` is None, it lacks kernels.
        """
        if self._preparing is None:
            self._lacking = set()
            self._preparing = self._unfused.prepare(self._one_ops, self._lacking)
        for _ in self._preparing:
            if time.perf_counter_ns() >= until_ns:
                return False
        self._preparing = None
        if any(map(self._one_ops.has_news_of, self._lacking)):  # that came between two slices
            return self._prepare(until_ns)
        return self._unfused.is_ready

    def _go_on_with(self, row: Row, until_ns: int) -> Progress | None:
        """Runs a slice of the row. Returns None once the row has ended, or another attempt may follow at once.

        An unexpected exception fails only this row, because rows of other sessions must not fail with it.
        """
        try:
            if not self._unfused.is_ready and not self._prepare(until_ns):
                return Progress.LACKS_KERNELS if self._preparing is None else Progress.GOES_ON
            if self._waits_for_memory and self._memory.is_held_by_older(self._temporaries):
                return Progress.WAITS
            self._waits_for_memory = False
            if self._stops > MOST_STOPS:
                self._fail_row(
                    row, "out_of_memory", f"other values took the memory of this segment {self._stops} times"
                )
                return None
            if not self._compute(row, until_ns):
                return Progress.GOES_ON
            self._leave_row()
        except (OutOfMemory, MemoryError) as error:
            return self._retreat(row, str(error) or "the host has no memory for a value of this op")
        except Exception as error:
            log.exception("a row that went on op by op failed")
            self._fail_row(row, "server_fault", f"running it op by op failed: {type(error).__name__}")
        return None

    def _compute(self, row: Row, until_ns: int) -> bool:
        """Runs iterations of a row until the time is over. Returns whether all of them have ended."""
        span = self.order.submission.spans[row]
        if self._skipped is None:
            self._begin_row(row)
        while self._iterations < len(span):
            if self._iteration is None:
                at = row.at(span[self._iterations])
                self._iteration = Iteration(self._temporaries, self._unfused, at, self._skipped or frozenset())
            if not self._iteration.go_on(until_ns):
                return False
            self._stop()
            self._stops = 0
            self._iterations += 1
            if time.perf_counter_ns() >= until_ns and self._iterations < len(span):
                return False
        return True

    def _begin_row(self, row: Row) -> None:
        self._skipped = row.failed_ops
        self._release_failed(row)
        lacking = self._ops_without_input(row)
        if not self._skipped.issuperset(lacking):
            self._fail_ops(row, "out_of_memory", NO_INPUT, lacking)
        for text, ops in self._unfused.refused.items():
            if not self._skipped.issuperset(ops):
                self._fail_ops(row, "server_fault", text, ops)

    def _ops_without_input(self, row: Row) -> list[int]:
        """Returns the ops that depend on inputs without memory."""
        positions = [position for position, value in enumerate(row.inputs) if value.block is None]
        if not positions:
            return []
        iterations = row.iterations
        uses = {} if iterations is None else first_uses(iterations.stepped, positions)
        inputs = [uses[position][1] if position in uses else position for position in positions]
        failed = first_failed(self._unfused.program, dict.fromkeys(inputs, 0), is_loop=iterations is not None)
        return [*finished(failed)]

    def _retreat(self, row: Row, text: str) -> Progress | None:
        """Gives back all temporaries, to begin the iteration again when no older run holds any.

        If none does, fails the op that found no memory. Without an iteration it was the host that had no memory, and
        the row fails.
        """
        if self._iteration is None:
            self._fail_row(row, "out_of_memory", text)
            return None
        op_index = self._iteration.op_index
        self._stop()
        if self._memory.is_held_by_older(self._temporaries):
            self._waits_for_memory = True
            return Progress.WAITS
        self._fail_ops(row, "out_of_memory", text, [op_index])
        return None

    def _give_way(self) -> None:
        """Gives back all temporaries, because others need the memory. The iteration begins again."""
        self._stop()
        self._stops += 1

    def _fail_ops(self, row: Row, case: str, text: str, ops: Sequence[int]) -> None:
        """Fails the results that depend on some ops. The row goes on without them."""
        dependent = dependent_ops(self._unfused.program, ops)
        self._skipped = (self._skipped or frozenset()).union(dependent)
        self.failed.append(FailedRow(row, case, text, tuple(ops)))
        row.failed_ops = self._skipped
        self._release_failed(row)

    def _release_failed(self, row: Row) -> None:
        skipped = self._skipped or frozenset()
        if skipped and self.order.submission.spans[row].stop == row.count:
            self._memory.release(tuple([value for value in row.outputs if value.op_index in skipped]))

    def _fail_row(self, row: Row, case: str, text: str) -> None:
        if row is self._rows[0]:
            self._leave_row()
        else:
            self._rows.remove(row)
        self.failed.append(FailedRow(row, case, text))
        self._memory.release(tuple(row.outputs))

    def _leave_row(self) -> None:
        self._stop()
        self._rows.popleft()
        self._iterations = self._stops = 0
        self._skipped = None
        self._waits_for_memory = False
        self._preparing = None  # if a fault has ended it, the next row begins it again

    def _stop(self) -> None:
        """Ends the current iteration, which begins again if it has not been completed."""
        self._iteration = None
        self._temporaries.release()
