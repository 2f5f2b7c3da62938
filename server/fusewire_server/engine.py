"""The conductor: receive → choose → submit → finish. The threads meet here and nowhere else.

The engine lives on the loop thread. It hands what clients send to the intake, lets the coalescer choose while the
device has room, orders the device thread about, and takes its reports. Nothing here waits.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from fusewire_kernels.devices.base import Device, LoadedPlan, Staged
from fusewire_protos import frames
from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_server import orders, tier0
from fusewire_server.backlog import Backlog, Items
from fusewire_server.carriers import Carriers
from fusewire_server.coalescer import Batch, Coalescer
from fusewire_server.config import Config
from fusewire_server.counters import Counters
from fusewire_server.device_thread import DeviceThread
from fusewire_server.holdings import Holdings
from fusewire_server.intake import Arrival, Intake, Item, Taken
from fusewire_server.planner import Planner
from fusewire_server.plans import Plans
from fusewire_server.programs import ProgramEntry, ProgramTable, TableBounds
from fusewire_server.room import MemoryCount
from fusewire_server.session import Session, SessionEvent, SessionState
from fusewire_server.slices import first_estimate_ns
from fusewire_server.uploads import Uploads
from fusewire_server.work import (
    NO_WORK,
    Amount,
    Beside,
    Failure,
    Fetching,
    Row,
    Submission,
    Value,
    ValueState,
    failure_of,
)

log = logging.getLogger("fusewire.engine")

# Submissions of a lane that are told to the device and not yet completed: one that runs and one behind it, so that it
# never idles.
MOST_OUTSTANDING = 2
FEW_ENTRIES = 4  # of a frame: they are applied without a look at the clock


class Lane(Enum):
    """Which submissions the device thread takes in turn: those of the fast lane overtake all others."""

    FAST = "fast"
    SLOW = "slow"  # rows that run op by op or take long, and rows of sessions that have such rows under way
    LASTING = "lasting"  # were slow, and take so long that others of the slow lane go on beside them


class Engine:
    """Sessions, programs and the device of one server process. Every method runs on the loop thread."""

    def __init__(self, config: Config, device: Device, planner: Planner | None) -> None:
        limits = config.limits
        self.config = config
        self.device = device
        self.instance = secrets.token_bytes(16)
        self.sessions: dict[bytes, Session] = {}
        self.counters = Counters()
        self.ended_sessions = 0
        self.closed_bytes_in = 0  # of sessions that have ended
        self.closed_bytes_out = 0
        self.is_held = False
        self.is_draining = False
        self.is_broken = False
        bounds = TableBounds(config.planner.cached_plans, config.planner.cached_bytes, limits.held_program_bytes)
        holdings = Holdings(lambda session: self.sessions[session].tenant)
        self.programs = ProgramTable(limits.program_limits(), config.planner.promote_fragment_after, bounds, holdings)
        self.on_broken: Callable[[BaseException], None] = _raise
        self._intake = Intake(limits, self.programs)
        self._most_listed = frames.most_listed(limits.program_limits())
        submission_ns = int(config.device.submission_s * 1e9)
        self._coalescer = Coalescer(most_rows=config.device.most_rows, submission_ns=submission_ns)
        self._most_whole_ns = sys.maxsize if device.in_slices is None else submission_ns
        self._loop = asyncio.get_running_loop()
        self._reports_lock = threading.Lock()  # makes "append, and see whether the loop must be woken" one step
        self._reports: list[orders.Report] = []
        self._device_thread = DeviceThread(device, self._take_report)
        self._plans = Plans(
            planner, device, self._device_thread.order, self.counters, config.device.arena_bytes, self._submit
        )
        self._outstanding: dict[int, _Told] = {}
        self._told: Counter[Lane] = Counter()  # how many of them are of each lane
        self._slow: Counter[Session] = Counter()  # rows of them that are not in the fast lane, by session
        self._last_slow: dict[Session, int] = {}  # which of the submissions of the slow lane a session waits for
        # Rows of them in the lasting lane and large values that are read: behind these their next rows would only wait.
        self._lasting: Counter[Session] = Counter()
        self._submissions = 0
        self.backlog = Backlog(self._apply, self.end)
        self.carriers = Carriers()
        self.uploads = Uploads(limits.upload_stall_s, self.upload_failed)
        self._wakers: dict[bytes, Callable[[], None]] = {}  # by session: tells its writer that something is owed
        self._deaths: dict[bytes, asyncio.TimerHandle] = {}  # by detached session

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
        """Ends the device thread after what it has been told; blocks for at most `timeout_s`."""
        self._device_thread.stop(timeout_s)

    # ---- sessions ----

    def open(self, tenant: str, client: str, peer: str) -> Session:
        """A new session. Raises CaseError if there may be no more, or the server is draining."""
        if self.is_draining:
            raise CaseError("draining", "the server is draining and takes no new sessions")
        limits = self.config.limits
        self._make_room(tenant)
        credit = Amount(limits.credit_ops, limits.credit_bytes, limits.credit_segments)
        session = Session(secrets.token_bytes(16), tenant, client[:128], peer, credit, limits.unread_bytes)
        session.heard_at_ns = time.monotonic_ns()
        self.sessions[session.session_id] = session
        return session

    def _make_room(self, tenant: str) -> None:
        """A tenant at a limit loses the session of its own that was detached first. Raises CaseError if it has none."""
        limits = self.config.limits
        own = sum(session.tenant == tenant for session in self.sessions.values())
        if own < limits.tenant_sessions and len(self.sessions) < limits.sessions:
            return
        detached = next((one for one in self._deaths if self.sessions[one].tenant == tenant), None)
        if detached is not None:
            self.end(self.sessions[detached])
        elif own >= limits.tenant_sessions:
            limit = limits.tenant_sessions
            raise CaseError("too_many_sessions", f"{own} sessions of this tenant; limits.tenant_sessions = {limit}")
        else:
            raise CaseError("too_many_sessions", f"{len(self.sessions)} sessions; limits.sessions = {limits.sessions}")

    def resume(self, session_id: bytes, instance: bytes, tenant: str, acknowledged: int) -> Session:
        """The session of a client that lost its stream. Raises CaseError if it is gone or another tenant's."""
        session = self.sessions.get(session_id) if instance == self.instance else None
        if session is None or session.tenant != tenant:
            raise CaseError("session_lost", "this server holds no such session")
        session.resume(acknowledged)
        session.heard_at_ns = time.monotonic_ns()
        death = self._deaths.pop(session_id, None)
        if death is not None:
            death.cancel()
        return session

    def attach(self, session: Session, wake: Callable[[], None]) -> None:
        """`wake` is called whenever the session's stream has something to send, and when another takes its place."""
        self._wake(session)
        self._wakers[session.session_id] = wake

    def detach(self, session: Session, epoch: int) -> None:
        """The stream of `epoch` broke: the session waits to be resumed until its grace has passed."""
        if session.epoch != epoch or session.state is not SessionState.OPEN:
            return
        session.on(SessionEvent.DISCONNECT)
        self._wakers.pop(session.session_id, None)
        grace_s = self.config.limits.resume_grace_s
        self._deaths[session.session_id] = self._loop.call_later(grace_s, self.end, session)

    def end(self, session: Session) -> None:
        """The session is over; everything it holds goes back."""
        if session.state is SessionState.CLOSED:
            return
        session.on(SessionEvent.END)
        self.sessions.pop(session.session_id, None)
        self.ended_sessions += 1
        self.closed_bytes_in += session.bytes_in
        self.closed_bytes_out += session.bytes_out
        self._wakers.pop(session.session_id, None)
        death = self._deaths.pop(session.session_id, None)
        if death is not None:
            death.cancel()
        self._coalescer.remove(session)
        self._plans.leave(session)
        self.backlog.drop(session)
        self.uploads.drop(session)
        self.carriers.end(session)
        taken = Taken()
        self._intake.close(session, taken)
        self._order_releases([session], taken.released)

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
            return self.backlog.begin(session, Items((), *unread), arrival)
        entries = frames.decode_entries(bindings)
        if len(entries) > FEW_ENTRIES or not session.may_go_on:
            return self.backlog.begin(session, Items(entries), arrival)
        following = iter(entries)
        left = self._apply(session, following, arrival, began_ns)
        return left is None or self.backlog.begin(session, Items((left, *following)), arrival)

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

    def acknowledge(self, session: Session, number: int) -> None:
        """The client has seen result frames up to `number`. Raises CaseError for one that was never sent."""
        session.acknowledge(number)
        self._read_on(session)

    def downloaded(self, session: Session, fetch: int, beside: Beside, *, is_complete: bool) -> None:
        """A call carries an answer no longer; the client has been sent all of its bytes, or not."""
        session.end_download(fetch, beside, is_complete=is_complete)
        if session.state is not SessionState.CLOSED:
            self._read_on(session)

    def uploaded(self, session: Session, value: Value, data: Staged) -> None:
        """The bytes of an upload have arrived as declared."""
        if session.state is SessionState.CLOSED:
            return
        value.readers += 1  # until it is written: its bytes count as the session's for as long as they are held
        self._order_write(orders.Write(session, value, data, NO_WORK))
        taken = Taken()
        self._intake.uploaded(session, value, taken)
        self._act(session, taken)

    def upload_failed(self, session: Session, value: Value, text: str, *, case: str = "upload_failed") -> None:
        """The upload stalled, lied or found no room; only what depends on it fails."""
        if session.state is SessionState.CLOSED or value.state is not ValueState.AWAITED:
            return
        failure = Failure(BY_NAME[case], self._no_room(text) if case == "out_of_memory" else text, 0, 0)
        taken = Taken(failures=[failure])
        self._intake.fail(session, value, failure, taken)
        self._act(session, taken)

    def _act(self, session: Session, taken: Taken) -> None:
        """Orders what a change of a session's tables asks for, in an order that keeps values alive."""
        for value, data in taken.writes:
            self._order_write(orders.Write(session, value, data, Amount(0, len(data), 0)))
        for value in taken.declared:
            self.uploads.declare(session, value)
        for failure in taken.failures:
            self.counters.failed(failure.case)
        for entry in taken.used:
            self._plans.prepare_tier0(entry, session)
        for entry in taken.to_plan:
            self._plans.plan(entry, session)
        self._order_reads(taken)
        self._order_releases([session], taken.released)
        self._read_on(session)
        self._coalescer.update(session)
        self._submit()
        self._wake(session)

    def _order_write(self, write: orders.Write) -> None:
        write.session.writes += 1
        self._device_thread.order(write)

    def _order_reads(self, taken: Taken) -> None:
        reads, taken.reads = taken.reads, []
        for fetching in reads:
            session = fetching.session
            if not session.reads and session.may_read(fetching.value.spec.size_bytes):
                self._tell_read(fetching, taken)
            else:
                session.reads[fetching.fetch] = fetching
                self._tell_reads(session, taken)

    def _read_on(self, session: Session) -> None:
        """The client has taken answers, so that more values may come to the host."""
        if not session.reads:
            return
        taken = Taken()
        self._tell_reads(session, taken)
        self._order_releases([session], taken.released)

    def _tell_reads(self, session: Session, taken: Taken) -> None:
        while session.reads:
            fetching = next(iter(session.reads.values()))
            if not session.may_read(fetching.value.spec.size_bytes):
                return
            del session.reads[fetching.fetch]
            self._tell_read(fetching, taken)

    def _tell_read(self, fetching: Fetching, taken: Taken) -> None:
        fetching.session.begin_read(fetching.fetch, fetching.value.spec.size_bytes)
        fetching.told_at_ns = time.monotonic_ns()
        data = self._device_thread.read_at_once(fetching.value)
        if data is None:
            self._order_read(orders.Read(fetching))
        else:
            self._answer(fetching, data)
        self._intake.read(fetching, taken)

    def _order_read(self, read: orders.Read) -> None:
        self._device_thread.order(read)
        if orders.goes_in_slices(read):
            self._lasting[read.fetching.session] += 1

    def _order_releases(self, sessions: Iterable[Session], values: list[Value]) -> None:
        if values:
            self._device_thread.order(orders.Release(frozenset(sessions), tuple(values)))

    # ---- choose and submit ----

    def hold(self) -> None:
        """The device takes no new submission until `unhold`."""
        self.is_held = True

    def unhold(self) -> None:
        self.is_held = False
        self._submit()

    def _submit(self) -> None:
        while not self.is_held and self._told[Lane.FAST] < MOST_OUTSTANDING:
            batch = self._coalescer.next_batch(self._open_lane, self._rows_that_fit)
            if batch is None:
                return
            self._submit_batch(batch)

    def _open_lane(self, row: Row) -> Hashable | None:
        """Where a row would go if it went now; None if it cannot.

        In the slow lane it goes with rows that wait for the same submission: for any other it would wait for nothing.
        """
        if row.session in self._lasting or (row.entry.loaded is None and row.entry.missing_calls):
            return None
        lane = self._lane(row)
        return self._last_slow.get(row.session, lane) if self._told[lane] < MOST_OUTSTANDING else None

    def _lane(self, row: Row) -> Lane:
        loaded = row.entry.loaded
        is_slow = loaded is None or row.session in self._slow or self._is_long(row.entry, loaded)
        return Lane.SLOW if is_slow else Lane.FAST

    def _is_long(self, entry: ProgramEntry, loaded: LoadedPlan) -> bool:
        """Whether others are not to wait for the end of a row that runs by this plan."""
        return (entry.row_ns or first_estimate_ns(loaded.plan.cost)) > self._most_whole_ns

    def _rows_that_fit(self, entry: ProgramEntry) -> int:
        if entry.loaded is None:
            return self.config.device.most_rows
        return self.device.rows_that_fit(entry.loaded.plan.arena_bytes)

    def _submit_batch(self, batch: Batch) -> None:
        taken = Taken()
        rows = tuple(row for row in batch.rows if self._is_worth_running(row, taken))
        self._coalescer.refund(batch, set(batch.rows).difference(rows))
        self._order_reads(taken)
        self._order_releases({row.session for row in batch.rows}, taken.released)
        taken.released = []
        if not rows:
            return
        self._submissions += 1
        number = self._submissions
        loaded = batch.entry.loaded
        told = _Told(Batch(batch.entry, rows, batch.row_ns), loaded, self._lane(rows[0]))
        self._outstanding[number] = told
        self._count_told(told, 1)
        if told.lane is Lane.SLOW:
            self._last_slow.update({row.session: number for row in rows})
        now_ns = time.monotonic_ns()
        for row in rows:
            self.counters.queue.add(now_ns - row.queued_at_ns)
        donated = tuple(self._leave_inputs(row, taken) for row in rows)
        for row in rows:
            self._publish_outputs(row, taken)
        released = tuple(taken.released)
        taken.released = []
        is_long = loaded is not None and self._is_long(batch.entry, loaded)
        submission = Submission(batch.entry, loaded, rows, donated, released)
        self._device_thread.order(orders.Run(number, submission, is_long))
        self._order_reads(taken)
        self._order_releases({row.session for row in rows}, taken.released)

    def _count_told(self, told: _Told, change: int) -> None:
        """A submission has been told to the device (+1), or has been completed (−1)."""
        self._told[told.lane] += change
        if told.lane is not Lane.FAST:
            self._slow.update({row.session: change for row in told.batch.rows})
            self._slow = +self._slow  # without those of none

    def _is_worth_running(self, row: Row, taken: Taken) -> bool:
        fault = row.entry.fault
        if fault is not None and row.entry.loaded is None:
            self.counters.failed(fault.case)
            self._drop(row, fault._replace(base=row.base), taken)
            return False
        self._intake.poison_from_inputs(row, taken)
        if not row.outputs or any(value.state is not ValueState.FAILED for value in row.outputs):
            return True
        self._drop(row, failure_of(row.outputs[0]), taken)
        return False

    def _drop(self, row: Row, failure: Failure, taken: Taken) -> None:
        self._intake.drop(row, failure, taken)
        self._wake(row.session)

    def _leave_inputs(self, row: Row, taken: Taken) -> tuple[tuple[int, int], ...]:
        """The row's inputs lose a reader; those that die are donated where that is permitted, else released."""
        donated = self._donations(row)
        donors = {row.inputs[number] for number, _ in donated}
        for value in row.inputs:
            value.readers -= 1
            if value in donors:
                self._intake.forget(row.session, value)
            elif value.is_dead:
                self._intake.release_if_dead(row.session, value, taken)
        return donated

    def _donations(self, row: Row) -> tuple[tuple[int, int], ...]:
        if not self.config.device.donation:
            return ()
        loaded = row.entry.loaded
        dying = [number for number, value in enumerate(row.inputs) if _is_last_read(value)]
        permitted = tier0.donations(row.entry.program, dying) if loaded is None else loaded.plan.donations
        inputs, positions = set(dying), set(range(len(row.outputs)))
        chosen: list[tuple[int, int]] = []
        for number, position in permitted:
            if number in inputs and position in positions:
                chosen.append((number, position))
                inputs.discard(number)
                positions.discard(position)
        return tuple(chosen)

    def _publish_outputs(self, row: Row, taken: Taken) -> None:
        for value in row.outputs:
            if value.state is not ValueState.FAILED:
                self._intake.ready(row.session, value, taken)
                self._intake.release_if_dead(row.session, value, taken)
            else:
                taken.released.append(value)

    # ---- finish ----

    def _take_report(self, report: orders.Report) -> None:
        """Device and completion thread: passes a report to the loop."""
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

    def _finish(self, report: orders.Report) -> None:  # noqa: C901 - one line a kind of report
        match report:
            case orders.Ran():
                self._finish_submission(report)
            case orders.Lasts():
                self._pass_by(report.number)
            case orders.Brought():
                self._end_read(report)
                self._answer(report.fetching, report.data)
            case orders.Missing():
                self._end_read(report)
                self._answer_missing(report.fetching)
            case orders.Wrote():
                self._finish_writing(report)
            case orders.Loaded():
                self._plans.loaded(report)
            case orders.Unloadable():
                self._plans.refused(report.key, report.text)
            case orders.Broken():
                log.error("the device is broken: %r", report.error)
                self._break(report.error)

    def _pass_by(self, number: int) -> None:
        """A submission takes long: its place in the slow lane is free for others."""
        told = self._outstanding[number]
        self._told[told.lane] -= 1
        self._outstanding[number] = told._replace(lane=Lane.LASTING)
        self._told[Lane.LASTING] += 1
        self._lasting.update([row.session for row in told.batch.rows])

    def _finish_submission(self, ran: orders.Ran) -> None:
        told = self._outstanding.pop(ran.number)
        self._count_told(told, -1)
        batch, loaded, lane = told
        if lane is not Lane.FAST:
            ended = [row.session for row in batch.rows if self._last_slow.get(row.session) == ran.number]
            for session in ended:
                del self._last_slow[session]
        if lane is Lane.LASTING:
            self._lasting -= Counter([row.session for row in batch.rows])
        row_ns = ran.device_ns // len(batch.rows)
        if loaded is batch.entry.loaded and not ran.failed:  # what fails is over too soon
            batch.entry.measured(row_ns)
        self._coalescer.settle(batch, row_ns)
        self.counters.ran(batch.entry, loaded, len(batch.rows), ran.device_ns)
        for failed in ran.failed:
            self._fail_row(failed)
        for row in batch.rows:
            row.session.complete(row.amount)
            row.session.device_ns += row_ns
            self._wake(row.session)

    def _fail_row(self, failed: orders.FailedRow) -> None:
        row = failed.row
        text = self._no_room(failed.text) if failed.case == "out_of_memory" else failed.text
        failure = Failure(BY_NAME[failed.case], text, row.base, 0)
        self.counters.failed(failure.case)
        if row.session.state is not SessionState.CLOSED:
            self._intake.fail_row(row, failure, Taken())

    def _no_room(self, text: str) -> str:
        """Names the setting, and what it comes to."""
        return f"{text}; device.memory_bytes = {self.device.info.memory_bytes}"

    def _finish_writing(self, wrote: orders.Wrote) -> None:
        session, value = wrote.write.session, wrote.write.value
        session.complete(wrote.write.credit)
        session.writes -= 1
        self.backlog.wrote(session)
        if session.state is SessionState.CLOSED:
            return
        taken = Taken()
        if isinstance(wrote.write.data, Staged):
            value.readers -= 1
            self._intake.release_if_dead(session, value, taken)
        if wrote.refusal is not None:
            failure = Failure(BY_NAME["out_of_memory"], self._no_room(wrote.refusal), 0, 0)
            self.counters.failed(failure.case)
            self._intake.fail(session, value, failure, taken)
        self._order_releases([session], taken.released)
        self._wake(session)

    def _end_read(self, report: orders.Brought | orders.Missing) -> None:
        session = report.fetching.session
        session.device_ns += report.device_ns
        self._coalescer.charge(session, report.device_ns)
        if orders.goes_in_slices(orders.Read(report.fetching)):
            self._lasting -= Counter([session])

    def _answer(self, fetching: Fetching, data: memoryview) -> None:
        session = fetching.session
        session.bytes_out += len(data)
        self.counters.copy_out.add(time.monotonic_ns() - fetching.told_at_ns)
        if fetching.is_abandoned or session.state is SessionState.CLOSED:
            self._drop_read(fetching)
        else:
            session.answer(fetching.fetch, data)
            self._wake(session)

    def _answer_missing(self, fetching: Fetching) -> None:
        session = fetching.session
        if fetching.is_abandoned or session.state is SessionState.CLOSED:
            self._drop_read(fetching)
            return
        no_room = Failure(BY_NAME["out_of_memory"], self._no_room("the device has no room"), 0, 0)
        session.answer_failure(fetching.fetch, fetching.value.failure or no_room)
        self._wake(session)

    def _drop_read(self, fetching: Fetching) -> None:
        """Nobody wants the value that has come to the host."""
        fetching.session.drop_read(fetching.fetch)
        self._read_on(fetching.session)

    def _wake(self, session: Session) -> None:
        wake = self._wakers.get(session.session_id)
        if wake is not None:
            wake()


class _Told(NamedTuple):
    """A batch that the device has been told to run, with the plan it runs by (None at tier 0)."""

    batch: Batch
    loaded: LoadedPlan | None
    lane: Lane


def _is_last_read(value: Value) -> bool:
    """Whether a row about to run is the last that reads a value, and reads it as one input only."""
    return not value.is_named and value.readers == 1 and value.state is ValueState.READY


def _raise(error: BaseException) -> None:
    raise error
