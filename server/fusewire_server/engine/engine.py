"""The conductor: receive → choose → submit → finish. The threads meet here and nowhere else.

The engine lives on the loop thread. It hands what clients send to the intake, lets the coalescer choose while the
device has room, orders the device thread about, and takes its reports. Nothing here waits.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice

from fusewire_kernels.devices.base import Device, Staged
from fusewire_protos import frames
from fusewire_protos.credit import NO_WORK, Amount
from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_server.config.config import Config
from fusewire_server.device import orders
from fusewire_server.device.device_thread import DeviceThread
from fusewire_server.device.memory import MemoryCount
from fusewire_server.device.orders import Submission
from fusewire_server.engine.backlog import Backlog, Items
from fusewire_server.engine.bulk_calls import BulkCalls
from fusewire_server.engine.reads import Reads
from fusewire_server.engine.registry import Ended, Registry
from fusewire_server.engine.row_effects import leave_inputs, publish_outputs
from fusewire_server.engine.uploads import Uploads
from fusewire_server.planning.planner import Planner
from fusewire_server.planning.plans import Plans
from fusewire_server.programs.counters import Counters
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_quota import ProgramQuota
from fusewire_server.programs.program_table import ProgramEntry, ProgramTable, TableBounds
from fusewire_server.scheduling.coalescer import Batch, Coalescer
from fusewire_server.scheduling.lanes import Lanes
from fusewire_server.sessions.answers import Beside
from fusewire_server.sessions.intake import MOST_KILLED, Arrival, Intake, Item, Taken
from fusewire_server.sessions.rows import bring_upload, drop_row, fail_row, fail_value, poison_from_inputs
from fusewire_server.sessions.session import Row, Session, SessionState, Value, ValueState, failure_of
from fusewire_server.sessions.values import let_die, release_if_dead

log = logging.getLogger("fusewire.engine")

FEW_ENTRIES = 4  # of a frame: they are applied without a look at the clock


class Engine:
    """Sessions, programs and the device of one server process.

    Every method runs on the loop thread unless it says otherwise.
    """

    def __init__(self, config: Config, device: Device, planner: Planner | None) -> None:
        limits = config.limits
        self.config = config
        self.device = device
        self.counters = Counters()
        self.is_held = False
        self.is_draining = False
        self.is_broken = False
        self.on_broken: Callable[[BaseException], None] = _raise
        self._registry = Registry(limits, self.end)
        self._backlog = Backlog(self._apply, self.end)
        self._bulk_calls = BulkCalls()
        self._ended: dict[Session, dict[int, Value]] = {}  # what sessions that have ended still hold
        self._uploads = Uploads(limits.upload_stall_s, self.upload_failed)
        self.programs = _program_table(config, self._registry)
        self._intake = Intake(limits, self.programs)
        self._most_listed = frames.most_listed(limits.program_limits())
        submission_ns = int(config.device.submission_s * 1e9)
        self._coalescer = Coalescer(most_rows=config.device.most_rows, submission_ns=submission_ns)
        self._lanes = Lanes(sys.maxsize if device.in_slices is None else submission_ns)
        self._loop = asyncio.get_running_loop()
        self._reports_lock = threading.Lock()  # makes "append, and see whether the loop must be woken" one step
        self._reports: list[orders.Report] = []
        self._device_thread = DeviceThread(device, self._take_report)
        self._orders: list[orders.Order] = []  # of this turn of the loop, for the device thread
        self._plans = Plans(planner, device, self._order, self.counters, config.device.arena_bytes, self._submit)
        self._reads = Reads(self._order, self._lanes, self.counters, self._registry.wake, self.no_room)

    @property
    def sessions(self) -> Mapping[bytes, Session]:
        """Those that have not ended, by id."""
        return self._registry.sessions

    @property
    def instance(self) -> bytes:
        """Which server this is: a client compares it when it comes back."""
        return self._registry.instance

    @property
    def ended(self) -> Ended:
        """Totals of the sessions that have ended."""
        return self._registry.ended

    @property
    def memory(self) -> MemoryCount:
        return self._device_thread.memory()

    @property
    def device_busy_ns(self) -> int:
        return self._device_thread.busy_ns

    @property
    def is_ready(self) -> bool:
        """Whether what is sent will be done."""
        return self._device_thread.is_running and not self.is_broken

    def start(self) -> None:
        self._device_thread.start()

    def stop(self, timeout_s: float) -> None:
        """Gives back all that ended sessions held, and ends the device thread after what it has been told.

        Blocks for at most `timeout_s`; any thread.
        """
        ended = list(self._ended.items())
        left = [orders.Release(frozenset((session,)), tuple(values.values())) for session, values in ended]
        self._device_thread.order(*self._orders, *left)
        self._device_thread.stop(timeout_s)

    # ---- sessions ----

    def open(self, tenant: str, client: str, peer: str) -> Session:
        """A new session. Raises CaseError if there may be no more, or the server is draining."""
        if self.is_draining:
            raise CaseError("draining", "the server is draining and takes no new sessions")
        return self._registry.open(tenant, client, peer)

    def resume(self, session_id: bytes, instance: bytes, tenant: str, acknowledged: int) -> Session:
        """The session of a client that lost its stream. Raises CaseError if it is gone or another tenant's."""
        return self._registry.resume(session_id, instance, tenant, acknowledged)

    def attach(self, session: Session, wake: Callable[[], None]) -> None:
        """A stream carries the session. `wake` is called when it has something to send, or is replaced."""
        self._registry.attach(session, wake)

    def detach(self, session: Session, epoch: int) -> None:
        """The stream of `epoch` broke: the session waits to be resumed."""
        self._registry.detach(session, epoch)

    def carrying(self, session: Session) -> AbstractContextManager[None]:
        """While the body runs, the task that runs it ends with the session. Raises CaseError if it has too many."""
        return self._bulk_calls.carrying(session)

    def drain(self) -> None:
        """From now on no session begins, and the stream of each that there is ends it in words. Comes before `stop`."""
        self.is_draining = True
        for session in self.sessions.values():
            self._registry.wake(session)

    def end(self, session: Session) -> None:
        """The session is over; everything it holds goes back."""
        if session.state is SessionState.CLOSED:
            return
        self._registry.take_out(session)
        self._coalescer.remove(session)
        self._plans.leave(session)
        self._backlog.drop(session)
        self._uploads.drop(session)
        self._bulk_calls.end(session)
        self._order_releases([session], session.large.values())
        self._ended[session] = self._intake.close(session)
        self._give_back(session)

    def _give_back(self, session: Session) -> None:
        """Of the values of a session that has ended some go back in each turn of the loop, the oldest first.

        A value leaves the table only when its release has been ordered, because `stop` looks there from its thread.
        """
        values = self._ended[session]
        piece = tuple(islice(values.values(), MOST_KILLED))
        self._order_releases([session], piece)
        self._hand_over()
        let_die(values, piece)
        if values:
            self._loop.call_soon(self._give_back, session)
        else:
            del self._ended[session]

    # ---- receive ----

    def receive(
        self, session: Session, number: int, programs: bytes, bindings: bytes, tensors: Sequence[bytes]
    ) -> bool:
        """Applies a numbered frame, or begins to. Whether that was all; if not, `backlog` applies the rest.

        Raises CaseError for a protocol case, which ends the session.
        """
        if not session.accept(number):
            return True
        began_ns = time.monotonic_ns()
        session.heard_at_ns = began_ns
        arrival = Arrival(tensors, began_ns)
        self.counters.frames += 1
        if programs or len(bindings) > frames.SHORT_BYTES:
            unread = frames.read_programs(programs), frames.read_entries(bindings, self._most_listed)
            return self._backlog.begin(session, Items((), *unread), arrival)
        entries = frames.decode_entries(bindings)
        if len(entries) > FEW_ENTRIES or not session.may_go_on:
            return self._backlog.begin(session, Items(entries), arrival)
        following = iter(entries)
        left = self._apply(session, following, arrival, began_ns)
        return left is None or self._backlog.begin(session, Items((left, *following)), arrival)

    def _apply(self, session: Session, items: Iterable[Item], arrival: Arrival, began_ns: int) -> Item | None:
        """Applies items until one of them leaves something to be done, which is returned."""
        taken = Taken()
        try:
            left = self._intake.take(session, items, arrival, taken)
        except CaseError:
            self._order_releases([session], taken.released)  # they are in none of the session's tables any more
            raise
        self.counters.decode.add(time.monotonic_ns() - began_ns)
        self._act(session, taken)
        return left

    async def applied(self, session: Session) -> None:
        """Returns when all frames received so far are applied. Raises CaseError if one cannot be."""
        await self._backlog.applied(session)

    def acknowledge(self, session: Session, number: int) -> None:
        """The client has seen result frames up to `number`. Raises CaseError for one that was never sent."""
        session.answers.acknowledge(number)
        self._reads.go_on(session)

    def downloaded(self, session: Session, fetch: int, beside: Beside, *, is_complete: bool) -> None:
        """A call carries an answer no longer; the client has been sent all of its bytes, or not."""
        session.answers.end_download(fetch, beside, is_complete=is_complete)
        if session.state is not SessionState.CLOSED:
            self._reads.go_on(session)

    def claim_upload(self, session: Session, handle: int) -> asyncio.Future[Value | None]:
        """The value that a call is to fill, as soon as the stream declares it. None if it never will."""
        return self._uploads.claim(session, handle)

    def give_up_upload(self, session: Session, handle: int, call: asyncio.Future[Value | None]) -> Value | None:
        """A call waits no longer for its declaration; the value if it has been declared in this very turn."""
        return self._uploads.give_up(session, handle, call)

    def refuse_upload(self, session: Session, handle: int, error: CaseError) -> None:
        """A call was not let in: its upload fails, now or when the stream declares it."""
        self._uploads.refuse(session, handle, error)

    def uploaded(self, session: Session, value: Value, data: Staged) -> None:
        """The bytes of an upload have arrived as declared."""
        if session.state is SessionState.CLOSED:
            return
        value.readers += 1  # until it is written: its bytes count as the session's for as long as they are held
        self._order_write(orders.Write(session, value, data, NO_WORK))
        taken = Taken()
        bring_upload(session, value, taken.reads, taken.released)
        self._act(session, taken)

    def upload_failed(self, session: Session, value: Value, text: str, *, case: str = "upload_failed") -> None:
        """The upload stalled, lied or found no room; only what depends on it fails."""
        if session.state is SessionState.CLOSED or value.state is not ValueState.AWAITED:
            return
        failure = Failure(BY_NAME[case], text, 0, 0)
        taken = Taken()
        taken.failures.append(failure)
        fail_value(session, value, failure)
        self._act(session, taken)

    def _act(self, session: Session, taken: Taken) -> None:
        """Orders what a change of a session's tables asks for, in an order that keeps values alive."""
        for value, data in taken.writes:
            self._order_write(orders.Write(session, value, data, Amount(0, len(data), 0)))
        for value in taken.declared:
            self._uploads.declare(session, value)
        for failure in taken.failures:
            self.counters.failed(failure.case)
        for entry in taken.to_plan:
            self._plans.plan(entry, session)
        for entry in taken.used:
            self._plans.prepare_tier0(entry, session)
        self._reads.tell(taken)
        self._order_releases([session], taken.released)
        self._reads.go_on(session)
        self._coalescer.update(session)
        self._submit()
        self._hand_over()
        self._registry.wake(session)

    # ---- orders ----

    def _order(self, order: orders.Order) -> None:
        """Gives the device thread an order: with all others of this turn of the loop, so that it wakes up once."""
        if not self._orders:
            self._loop.call_soon(self._hand_over)  # for those turns that do not do so themselves
        self._orders.append(order)

    def _hand_over(self) -> None:
        if self._orders:
            given, self._orders = self._orders, []
            self._device_thread.order(*given)

    def _order_write(self, write: orders.Write) -> None:
        write.session.writes += 1
        self._order(write)

    def _order_releases(self, sessions: Iterable[Session], values: Collection[Value]) -> None:
        if values:
            self._order(orders.Release(frozenset(sessions), tuple(values)))

    # ---- choose and submit ----

    def hold(self) -> None:
        """The device takes no new submission until `unhold`."""
        self.is_held = True

    def unhold(self) -> None:
        self.is_held = False
        self._submit()

    def _submit(self) -> None:
        while not self.is_held and self._lanes.has_room:
            batch = self._coalescer.next_batch(self._lanes.open_to, self._rows_that_fit)
            if batch is None:
                return
            self._submit_batch(batch)

    def _rows_that_fit(self, entry: ProgramEntry) -> int:
        if entry.loaded is None:
            return self.config.device.most_rows
        return self.device.rows_that_fit(entry.loaded.plan.arena_bytes)

    def _submit_batch(self, batch: Batch) -> None:
        taken = Taken()
        rows = tuple([row for row in batch.rows if self._is_worth_running(row, taken)])
        if len(rows) < len(batch.rows):
            self._coalescer.refund(batch, set(batch.rows).difference(rows))
            self._release_of_rows(batch.rows, taken)
            batch = Batch(batch.entry, rows, batch.row_ns)
        if rows:
            self._tell_batch(batch, taken)

    def _tell_batch(self, batch: Batch, taken: Taken) -> None:
        entry, rows, loaded = batch.entry, batch.rows, batch.entry.loaded
        number = self._lanes.tell(batch, loaded)
        now_ns = time.monotonic_ns()
        for row in rows:
            self.counters.queue.add(now_ns - row.queued_at_ns)
        may_donate = self.config.device.donation
        donated = tuple([leave_inputs(row, taken, may_donate=may_donate) for row in rows])
        for row in rows:
            publish_outputs(row, taken)
        reads = self._reads.take_carried(taken)
        released, taken.released = tuple(taken.released), []
        is_long = loaded is not None and self._lanes.is_long(entry, loaded)
        run = orders.Run(number, Submission(entry, loaded, rows, donated, released, reads), is_long)
        self._order(run)
        self._reads.tell(taken)
        self._release_of_rows(rows, taken)

    def _release_of_rows(self, rows: Sequence[Row], taken: Taken) -> None:
        """Releases what died with rows: values of their sessions."""
        released, taken.released = taken.released, []
        if released:
            self._order_releases({row.session for row in rows}, released)

    def _is_worth_running(self, row: Row, taken: Taken) -> bool:
        fault = row.entry.fault
        if fault is not None and row.entry.loaded is None:
            self.counters.failed(fault.case)
            self._drop(row, fault._replace(base=row.base), taken)
            return False
        poison_from_inputs(row, taken.released)
        if _is_wanted(row):
            return True
        self._drop(row, failure_of(row.outputs[0]), taken)
        return False

    def _drop(self, row: Row, failure: Failure, taken: Taken) -> None:
        drop_row(row, failure, taken.released)
        self._registry.wake(row.session)

    # ---- finish ----

    def _take_report(self, report: orders.Report) -> None:
        """Any thread: passes a report to the loop, which takes it in in a turn of its own."""
        with self._reports_lock:
            self._reports.append(report)
            is_first = len(self._reports) == 1
        if is_first:
            self._loop.call_soon_threadsafe(self._finish_reports)

    def _finish_reports(self) -> None:
        with self._reports_lock:
            reports, self._reports = self._reports, []
        for report in reports:
            self._finish_surely(report)
        self._submit()
        self._hand_over()

    def _finish_surely(self, report: orders.Report) -> None:
        """A report that cannot be taken in leaves tables behind that nobody may rely on; the others are taken in."""
        try:
            self._finish(report)
        except Exception as error:
            log.exception("a report of the device thread could not be taken in")
            self._break(error)

    def _break(self, error: BaseException) -> None:
        self.is_broken = True
        self.on_broken(error)

    def _finish(self, report: orders.Report) -> None:
        match report:
            case orders.Ran():
                self._finish_submission(report)
            case orders.Lasts():
                self._lanes.pass_by(report.number)
            case orders.Brought() | orders.Missing():
                self._end_read(report)
                self._reads.end(report)
            case orders.Wrote():
                self._finish_writing(report)
            case orders.Loaded():
                self._plans.loaded(report)
            case orders.Unloadable():
                self._plans.refused(report.key, report.text, case=report.case)
            case orders.Broken():
                log.error("the device is broken: %r", report.error)
                self._break(report.error)

    def _finish_submission(self, ran: orders.Ran) -> None:
        batch, loaded, _ = self._lanes.complete(ran.number)
        row_ns = ran.device_ns // len(batch.rows)
        if loaded is batch.entry.loaded and not ran.failed:  # what fails is over too soon
            batch.entry.cost.measured(len(batch.rows), ran.device_ns)
        self._coalescer.settle(batch, row_ns)
        self.counters.ran(batch.entry, loaded, len(batch.rows), ran.device_ns)
        for failed in ran.failed:
            self._fail_row(failed)
        for row in batch.rows:
            row.session.complete(row.entry.amount)
            row.session.device_ns += row_ns
            self._registry.wake(row.session)
        for read in ran.reads:
            self._reads.end(read)

    def _fail_row(self, failed: orders.FailedRow) -> None:
        row = failed.row
        text = self.no_room(failed.text) if failed.case == "out_of_memory" else failed.text
        failure = Failure(BY_NAME[failed.case], text, row.base, 0)
        self.counters.failed(failure.case)
        if row.session.state is not SessionState.CLOSED:
            fail_row(row, failure)

    def no_room(self, text: str) -> str:
        """What is too little for something on the device, with the setting's name and what it comes to."""
        return f"{text}; device.memory_bytes = {self.device.info.memory_bytes}"

    def _finish_writing(self, wrote: orders.Wrote) -> None:
        session, value = wrote.write.session, wrote.write.value
        session.complete(wrote.write.credit)
        session.writes -= 1
        self._backlog.wrote(session)
        if session.state is SessionState.CLOSED:
            return
        taken = Taken()
        if isinstance(wrote.write.data, Staged):
            value.readers -= 1
            release_if_dead(session, value, taken.released)
        if wrote.refusal is not None:
            failure = Failure(BY_NAME["out_of_memory"], self.no_room(wrote.refusal), 0, 0)
            self.counters.failed(failure.case)
            fail_value(session, value, failure)
        self._order_releases([session], taken.released)
        self._registry.wake(session)

    def _end_read(self, report: orders.Brought | orders.Missing) -> None:
        session = report.fetching.session
        session.device_ns += report.device_ns
        self._coalescer.charge(session, report.device_ns)
        if orders.goes_in_slices(orders.Read(report.fetching)):
            self._lanes.end_large_read(session)


def _is_wanted(row: Row) -> bool:
    """Whether there is anything left that a row could bring about."""
    for value in row.outputs:
        if value.state is not ValueState.FAILED:
            return True
    return not row.outputs


def _program_table(config: Config, registry: Registry) -> ProgramTable:
    limits, planner = config.limits, config.planner
    bounds = TableBounds(planner.cached_plans, planner.cached_bytes, limits.held_program_bytes)
    quota = ProgramQuota(lambda session: registry.sessions[session].tenant)
    return ProgramTable(limits.program_limits(), planner.promote_fragment_after, bounds, quota)


def _raise(error: BaseException) -> None:
    raise error
