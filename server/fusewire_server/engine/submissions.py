"""Submits rows while the device takes more submissions, and handles the outcomes.

The coalescer and the lanes decide which rows are submitted. This file updates the rows' values and makes the orders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

from fusewire_kernels.devices.base import Device
from fusewire_protos import profiled
from fusewire_protos.errors import BY_NAME
from fusewire_server.config.config import Device as DeviceSettings
from fusewire_server.device.orders import Brought, FailedRow, Missing, Ran, Run, Submission, is_large
from fusewire_server.engine.clock import Clock
from fusewire_server.engine.device_orders import DeviceOrders
from fusewire_server.engine.launch_records import LaunchRecords
from fusewire_server.engine.packing import Packing
from fusewire_server.engine.reads import Reads
from fusewire_server.engine.row_effects import Donations, leave_inputs, publish_outputs
from fusewire_server.programs.counters import Counters
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import PlanState, ProgramEntry
from fusewire_server.programs.recent import SLOW_NS, SlowRow
from fusewire_server.scheduling.coalescer import Batch, Coalescer
from fusewire_server.scheduling.lanes import Lanes, OutstandingBatch
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.rows import drop_row, fail_dependent, fail_from_inputs, fail_row
from fusewire_server.sessions.session import Row, Session, SessionState, ValueState, failure_of

COSTLY_ROW_NS = 200_000  # a row that takes the engine thread longer at its submission or at its end is charged


class Submissions:
    """The submissions of all sessions. The engine thread owns this state.

    `wake` is called when the server has an answer for a session's client. `no_room` completes the error text for a row
    that found no memory on the device. `plan` asks for the plan of a program. `charge` notes that the
    engine thread has worked for some sessions, as `Engine.charge` does. `records` are those of submissions.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - one argument for each part of the engine that it needs
        self,
        clock: Clock,
        settings: DeviceSettings,
        device: Device,
        orders: DeviceOrders,
        counters: Counters,
        wake: Callable[[Session], None],
        no_room: Callable[[str, str], str],
        plan: Callable[[ProgramEntry, Session], None],
        charge: Callable[..., None],
        records: LaunchRecords,
    ) -> None:
        submission_ns = int(settings.submission_s * 1e9)
        self._clock = clock
        self._settings = settings
        self._device = device
        self._orders = orders
        self._counters = counters
        self._wake = wake
        self._no_room = no_room
        self._plan = plan
        self._charge = charge
        self._records = records
        self._packing = Packing(clock, charge)
        self._coalescer = Coalescer(most_rows=settings.most_rows, submission_ns=submission_ns)
        self.lanes = Lanes()
        self.reads = Reads(orders, self.lanes, counters, wake, no_room)
        self.is_held = False  # whether submissions are held back

    def submit(self) -> None:
        """Submits rows as long as rows wait and the device takes more submissions."""
        while not self.is_held and self.lanes.has_room:
            batch = self._coalescer.next_batch(self.lanes.open_to, self._rows_that_fit)
            if batch is None:
                return
            began_ns = self._clock.monotonic_ns()
            self._counters.coalesced(len(batch.spans), batch.ready_sessions, batch.ended_by.value)
            self._submit_batch(batch)
            self._charge_if_costly(batch.spans, began_ns)

    def update(self, session: Session) -> None:
        """Notes that a session's queue has changed."""
        self._coalescer.update(session)

    def remove_session(self, session: Session) -> None:
        """Stops submitting rows of a session that has ended."""
        self._coalescer.remove(session)

    def mark_lasting(self, number: int) -> None:
        """Notes that a submission takes long, so that other submissions need not wait for it."""
        self.lanes.mark_lasting(number)

    def finish(self, ran: Ran) -> None:
        """Ends a completed submission: charges its time to its sessions, notes failed rows and answers reads."""
        began_ns = self._clock.monotonic_ns()
        outstanding = self.lanes.complete(ran.number)
        batch, loaded = outstanding.batch, outstanding.loaded
        iterations, longest = batch.iterations
        row_ns = ran.device_ns // iterations
        # Failed rows take less time than rows that run, so the time of a submission with failed rows does not count.
        if loaded is batch.entry.loaded and not ran.failed:
            _measure(batch.entry, iterations, longest, ran.device_ns)
        self._coalescer.settle(batch, row_ns)
        self._counters.ran(batch.entry, loaded, len(batch.spans), (iterations, longest), ran.device_ns)
        self._fail_rows(ran.failed)
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._records.watched_until_ns:
            self._records.add(outstanding, ran, now_ns)
        for row, span in batch.spans.items():
            row.session.device_ns += row_ns * len(span)
            if row.session.profile is not None:
                row.session.profile.add(_run_of(row, outstanding, ran, now_ns))
            if span.stop < row.count:
                continue
            row.session.end_row(row)
            _note_durations(row, outstanding.at_ns, ran.device_ns, now_ns)
            self._packing.add(row)
            self._wake(row.session)
            if now_ns - row.queued_at_ns >= SLOW_NS:
                self._note_slow(row, outstanding, ran.device_ns, now_ns)
        for read in ran.reads:
            self.reads.end(read)
        self._charge_if_costly(batch.spans, began_ns)

    def _charge_if_costly(self, rows: Collection[Row], began_ns: int) -> None:
        """Charges the time since `began_ns` to the sessions of these rows, unless it is that of usual rows.

        So a usual row costs no session anything here, and a client whose rows have thousands of results pays for them.
        """
        if self._clock.monotonic_ns() - began_ns > COSTLY_ROW_NS * len(rows):
            self._charge(began_ns, *[row.session for row in rows])

    def _note_slow(self, row: Row, outstanding: OutstandingBatch, device_ns: int, now_ns: int) -> None:
        self._counters.slow_rows.append(
            SlowRow(
                at_s=time.time(),
                session_id=row.session.session_id,
                digest=row.entry.digest,
                base=row.base,
                ops=row.entry.program.op_count,
                iterations=row.count,
                tier=0 if outstanding.loaded is None else 1,
                rows=len(outstanding.batch.spans),
                total_ns=now_ns - row.queued_at_ns,
                queue_ns=outstanding.at_ns - row.queued_at_ns,
                device_ns=device_ns,
                planning_ns=row.entry.planning_ns,
                compiling_ns=row.entry.compiling_ns,
            )
        )

    def finish_read(self, report: Brought | Missing) -> None:
        """Charges and answers a read that no submission carried."""
        session = report.pending.session
        session.device_ns += report.device_ns
        self._coalescer.charge(session, report.device_ns)
        if is_large(report.pending):
            self.lanes.end_large_read(session)
        self.reads.end(report)

    def _rows_that_fit(self, entry: ProgramEntry) -> int:
        if entry.loaded is None:
            return self._settings.most_rows
        return self._device.rows_that_fit(entry.loaded.plan.arena_bytes)

    def _submit_batch(self, batch: Batch) -> None:
        effects = Effects()
        dropped = {row for row in batch.spans if not self._is_worth_running(row, effects)}
        if dropped:
            self._coalescer.refund(batch, dropped)
            self._release_of_rows(batch.spans, effects)
            spans = {row: span for row, span in batch.spans.items() if row not in dropped}
            batch = Batch(batch.entry, spans, batch.row_ns, ended_by=batch.ended_by)
        if batch.spans:
            self._order_run(batch, effects)

    def _is_worth_running(self, row: Row, effects: Effects) -> bool:
        fail_from_inputs(row, effects.released)
        if _is_wanted(row):
            return True
        self._drop(row, failure_of(row.outputs[0]), effects)
        return False

    def _drop(self, row: Row, failure: Failure, effects: Effects) -> None:
        drop_row(row, failure, effects.released)
        self._wake(row.session)

    def _order_run(self, batch: Batch, effects: Effects) -> None:
        entry, spans, loaded = batch.entry, batch.spans, batch.entry.loaded
        now_ns = self._clock.monotonic_ns()
        number = self.lanes.tell(batch, loaded, now_ns)
        for row in spans:
            self._counters.queue.add(now_ns - row.waits_since_ns)
        donated = tuple([self._leave(row, span, effects, now_ns) for row, span in spans.items()])
        reads = self.reads.take_carried(effects)
        released, effects.released = tuple(effects.released), []
        self._orders.add(Run(number, Submission(entry, loaded, spans, donated, released, reads)))
        self.reads.order(effects)
        self._release_of_rows(spans, effects)

    def _leave(self, row: Row, span: range, effects: Effects, now_ns: int) -> Donations:
        """Notes that a row goes to the device. If iterations are left, they are the next of the session's rows."""
        loop = row.iterations
        if loop is not None and span.stop < loop.count:
            loop.begun = span.stop
            row.waits_since_ns = now_ns
            row.session.queue.appendleft(row)
            if row.entry.state is PlanState.UNPLANNED:  # a plan was refused, and may be had by now
                self._plan(row.entry, row.session)
            self._coalescer.update(row.session)
            return ()
        donated = leave_inputs(row, effects, may_donate=loop is None and self._settings.donation)
        publish_outputs(row, effects)
        return donated

    def _release_of_rows(self, rows: Collection[Row], effects: Effects) -> None:
        """Orders the release of values that died with these rows. The values belong to the sessions of the rows."""
        released, effects.released = effects.released, []
        if released:
            self._orders.add_release({row.session for row in rows}, released)

    def _fail_rows(self, rows: Iterable[FailedRow]) -> None:
        for failed in rows:
            self._fail_row(failed)

    def _fail_row(self, failed: FailedRow) -> None:
        """Fails the results of a row that the device could not run.

        If the cause is an input whose row has failed on the device before, the results carry that row's failure.
        """
        row = failed.row
        if row.session.state is SessionState.CLOSED:
            return
        failure = next((failure_of(value) for value in row.inputs if value.state is ValueState.FAILED), None)
        if failure is None:
            is_room = failed.case != "out_of_memory"
            text = failed.text if is_room else self._no_room(failed.text, row.session.tenant)
            failure = Failure(BY_NAME[failed.case], text, row.base, 0)
            self._counters.failed(failure, row.session.shown_id, time.time())
        if failed.ops:
            fail_dependent(row, failure, failed.ops)
        else:
            fail_row(row, failure)


def _run_of(row: Row, outstanding: OutstandingBatch, ran: Ran, now_ns: int) -> profiled.Run:
    """Returns what the row's client is told of its part in a submission."""
    span = outstanding.batch.spans[row]
    has_failed = any(each.row is row for each in ran.failed) if ran.failed else False
    return profiled.Run(
        row.base,
        min(row.queued_at_ns, outstanding.at_ns),
        outstanding.at_ns,
        now_ns,
        ran.device_ns,
        row.session.live_bytes,
        ran.number,
        span.start,
        len(span),
        len(outstanding.batch.spans),
        0 if outstanding.loaded is None else 1,
        int(has_failed),
    )


def _note_durations(row: Row, submitted_at_ns: int, device_ns: int, now_ns: int) -> None:
    """Counts how long a row waited, ran and took besides."""
    usage = row.session.usage
    usage.queue.add(max(submitted_at_ns - row.queued_at_ns, 0))
    usage.device.add(device_ns)
    usage.launch.add(max(now_ns - submitted_at_ns - device_ns, 0))


def _measure(entry: ProgramEntry, iterations: int, most: int, device_ns: int) -> None:
    """Notes the time of an iteration of all rows. If some rows run fewer than the `most` iterations, a mean counts."""
    entry.cost.measured(-(-iterations // most), device_ns // most)


def _is_wanted(row: Row) -> bool:
    """Returns whether a row has a result that has not failed, or has no results at all."""
    for value, _ in row.results():
        if value.state is not ValueState.FAILED:
            return True
    return not row.outputs
