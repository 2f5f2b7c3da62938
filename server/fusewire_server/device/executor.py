"""Acts on orders: runs submissions, moves values, loads plans. The hot path of a submission goes through here.

Runs on the device thread. An outcome that has to wait for the device is reported later (see `completion`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusewire_kernels.devices.base import Block, Device, LoadedPlan, Readback, Staged
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.errors import FusewireError, OutOfMemory
from fusewire_server.device.completion import Completion
from fusewire_server.device.device_time import DeviceTime
from fusewire_server.device.joined_reports import JoinedReports
from fusewire_server.device.memory.allocation import Allocation
from fusewire_server.device.memory.device_memory import DeviceMemory
from fusewire_server.device.orders import (
    Brought,
    FailedRow,
    Load,
    Loaded,
    Missing,
    NoKernel,
    Order,
    Ran,
    Read,
    Release,
    Run,
    Submission,
    Unloadable,
    Write,
    Wrote,
    no_room_on_host,
)
from fusewire_server.device.slots_of_rows import Spans, full_table, loop_table
from fusewire_server.device.unfused.one_ops import OneOps
from fusewire_server.sessions.device_share import DeviceShare
from fusewire_server.sessions.session import PendingFetch, Row


class Executor:
    """Acts on orders. Outcomes that are known at once go to `reports`; the completion reports all others."""

    def __init__(
        self,
        device: Device,
        memory: DeviceMemory,
        allocation: Allocation,
        completion: Completion,
        reports: JoinedReports,
        one_ops: OneOps,
    ) -> None:
        self._device = device
        self._one_ops = one_ops
        self._memory = memory
        self._allocation = allocation
        self._completion = completion
        self._reports = reports

    def act(self, order: Order) -> None:
        """Acts on an order until the order is done, or until only the device still has work to do for the order."""
        match order:
            case Run(number, submission):
                self._run(number, submission)
            case Write():
                self._write(order)
            case Read():
                self._completion.when_reached(self._begin_read(order.pending), is_awaited=True)
            case Release():
                self._memory.release(order.values)
            case Load():
                self._load(order)
            case NoKernel(call, refusal):
                if refusal:
                    self._one_ops.refuse(call, refusal)

    def _run(self, number: int, submission: Submission) -> None:
        rows, failed, spare = self._allocation.allocate(submission)
        device_time = DeviceTime(self._device)
        if rows:
            assert submission.loaded is not None, "a row without a plan goes in slices"
            failed += self._launch(submission, submission.loaded, rows, device_time)
        self.complete_run(number, submission, failed, spare, device_time)

    def complete_run(
        self,
        number: int,
        submission: Submission,
        failed: list[FailedRow],
        spare: list[Block],
        device_time: DeviceTime,
    ) -> None:
        """Starts the copies of results that clients wait for, and releases memory. The completion reports the run."""
        reads = [self._begin_read(pending) for pending in submission.reads]
        for block in spare:
            self._memory.give_back(block)
        self._memory.release(submission.released)

        def ran() -> Ran:
            return Ran(number, tuple(failed), device_time.total_ns(), tuple([read() for read in reads]))

        fence = None if reads else device_time.last_fence  # without reads the device got no work after this fence
        self._completion.when_reached(ran, is_awaited=bool(reads), fence=fence)

    def _launch(
        self, submission: Submission, loaded: LoadedPlan, rows: list[Row], device_time: DeviceTime
    ) -> list[FailedRow]:
        """Launches the plan for the iterations of all rows. Returns the failed rows: all rows or no row."""
        spans = submission.spans
        rows.sort(key=lambda row: len(spans[row]), reverse=True)
        try:
            if not self._launched_at_once(loaded, rows, spans, device_time):
                table, counts = full_table(self._device, loaded, rows, spans), [len(spans[row]) for row in rows]
                with device_time:
                    self._device.launch(loaded, table, counts)
        except OutOfMemory as error:
            return [self._refuse(row, error) for row in rows]
        return []

    def _launched_at_once(self, loaded: LoadedPlan, rows: Sequence[Row], spans: Spans, device_time: DeviceTime) -> bool:
        """Launches all iterations at once by a persistent kernel. Returns False if there is none for them."""
        persistent_kernels = self._device.persistent_kernels
        if persistent_kernels is None or loaded.plan.persistent is None or len(spans[rows[0]]) == 1:
            return False
        table = loop_table(self._device, loaded, rows, spans)
        if not persistent_kernels.can_run(loaded, table):
            return False
        with device_time:
            persistent_kernels.launch(loaded, table)
        return True

    def _refuse(self, row: Row, error: OutOfMemory) -> FailedRow:
        self._memory.release(tuple(row.outputs))
        return FailedRow(row, "out_of_memory", str(error))

    # ---- transfers ----

    def _write(self, write: Write) -> None:
        try:
            write.value.block = self._filled(write.data, write.value.share)
        except OutOfMemory as error:
            self._reports.add(Wrote(write, str(error)))
            return
        report = self._reports.add if isinstance(write.data, Staged) else self._reports.add_deferred
        report(Wrote(write, None))

    def _filled(self, data: bytes | Staged, share: DeviceShare) -> Block:
        if isinstance(data, Staged):
            return self._memory.put(data, share)
        block = self._memory.allocate(len(data), share)
        self._device.write(block, memoryview(data))
        return block

    def _load(self, load: Load) -> None:
        try:
            loaded = self._device.load(load.plan, load.binaries)
        except (FusewireError, OSError, MemoryError) as error:
            self._reports.add(Unloadable(load.key, str(error)))
            return
        if isinstance(load.key, OneOpCall):
            self._one_ops.add(load.key, loaded)
        self._reports.add(Loaded(load.key, loaded))

    def _begin_read(self, pending: PendingFetch) -> Callable[[], Brought | Missing]:
        """Starts the copy of a value to the host.

        Returns a function that returns the outcome; that function is called after the device has made the copy.
        """
        value = pending.value
        if value.block is None:
            return lambda: Missing(pending)  # the report of the order that should have written the value says why
        try:
            readback: Readback = self._device.read(value.block, value.size_bytes)
        except MemoryError:
            refusal = no_room_on_host(value.size_bytes)
            return lambda: Missing(pending, refusal=refusal)
        return lambda: Brought(pending, readback.data())
