"""Joins the parts of the server on the engine thread: receive, submit, finish. Nothing here blocks the engine thread.

The engine passes the frames of clients to the intake. It gives the resulting orders to the device thread, and handles
the device thread's reports. The engine thread and the device thread exchange data only here.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from fusewire_kernels.devices.base import Device, Staged
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos import frames
from fusewire_protos.credit import NO_WORK, Amount
from fusewire_protos.errors import BY_NAME, CaseError, ServerFault
from fusewire_protos.reader import SHORT_ITEM_BYTES
from fusewire_server.config.config import Config, Limits
from fusewire_server.device import orders
from fusewire_server.device.device_thread import DeviceThread
from fusewire_server.device.memory.device_memory import MemoryCount
from fusewire_server.device.memory.tenant_reserve import TenantReserve
from fusewire_server.device.unfused.one_ops import FindKernels
from fusewire_server.engine.backlog import Backlog, Items
from fusewire_server.engine.clock import Clock
from fusewire_server.engine.device_orders import DeviceOrders
from fusewire_server.engine.ended_sessions import EndedSessions
from fusewire_server.engine.launch_records import LaunchRecords
from fusewire_server.engine.outcome import Unapplied
from fusewire_server.engine.registry import Registry
from fusewire_server.engine.submissions import Submissions
from fusewire_server.engine.transfers import upload_effects
from fusewire_server.engine.transfers.bulk_calls import BulkCalls
from fusewire_server.engine.transfers.staging import Staging
from fusewire_server.engine.transfers.uploads import Uploads
from fusewire_server.planning.planner import Planner
from fusewire_server.planning.plans import KernelWait, Plans
from fusewire_server.programs.counters import BY_SERVER, Counters
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramEntry, program_table
from fusewire_server.programs.recent import EndedSession, when
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.entries.frame import Arrival, Item
from fusewire_server.sessions.intake import Intake
from fusewire_server.sessions.session import Session, SessionState, Value, ValueState
from fusewire_server.sessions.tables.answers import Beside
from fusewire_server.sessions.tenant_usage import TenantUsage

log = logging.getLogger("fusewire.engine")

# A frame of at most so many entries is applied at once; time slices read the clock after each entry. So no entry may
# take long, whatever a client writes into it.
FEW_ENTRIES = 4


class Engine:
    """The sessions, programs and device of one process.

    Every method runs on the engine thread unless it says otherwise.
    """

    def __init__(
        self,
        config: Config,
        device: Device,
        planner: Planner | None,
        find_kernels: FindKernels | None = None,
        device_number: int | None = None,
        clock: Clock = time,
    ) -> None:
        """`find_kernels` looks for compiled kernels of single ops. Without it, the planner has all of them made.

        `device_number` tells the device from those of the server's other engines. None: there is no other. `clock`
        measures the engine thread's time.
        """
        limits = config.limits
        self.config = config
        self.device = device
        self.clock = clock
        self.device_number = device_number or 0
        self.counters = Counters()
        self.is_draining = False
        self.drain_ends_at_ns = 0
        self.is_broken = False
        self.on_broken: Callable[[BaseException], None] = _raise
        self._registry = Registry(limits, self.end, device_number)
        self._backlog = Backlog(clock, self._apply, self.end)
        self._bulk_calls = BulkCalls()
        self.staging = Staging(device.info.memory_bytes, lambda: self._device_thread.values_bytes)
        self._uploads = Uploads(_upload_wait_s(limits), self.upload_failed)
        self.programs = program_table(config, lambda session: self._registry.sessions[session].tenant)
        self._intake = Intake(limits, self.programs)
        self._most_listed = frames.most_listed(limits.program_limits())
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        # Held while a thread appends a report and decides whether to wake the engine thread.
        self._reports_lock = threading.Lock()
        self._reports: list[orders.Report] = []
        self._device_thread = DeviceThread(
            device, find_kernels or _find_none, self._take_report, TenantReserve(config.tenant_reserve)
        )
        self._orders = DeviceOrders(self._device_thread.order, self._end_turn_soon)
        self._is_turn_ending = False  # whether `_end_turn` is going to be called
        self._ended_sessions = EndedSessions(self._orders)
        self._plans = Plans(planner, device, self._orders.add, self.counters, config.device.arena_bytes)
        self.launch_records = LaunchRecords(self.device_number)
        self._submissions = Submissions(
            clock,
            config.device,
            device,
            self._orders,
            self.counters,
            self._registry.wake,
            self.no_room,
            self._plans.plan,
            self.charge,
            self.launch_records,
        )
        self._reads = self._submissions.reads

    @property
    def sessions(self) -> Mapping[bytes, Session]:
        """The sessions that have not ended, by id."""
        return self._registry.sessions

    @property
    def instance(self) -> bytes:
        """The identity of this server process. A client that reconnects compares it."""
        return self._registry.instance

    @property
    def ended_sessions(self) -> int:
        """The number of sessions that have ended."""
        return self._registry.ended_sessions

    @property
    def usages(self) -> Mapping[str, TenantUsage]:
        """What the ended sessions of each tenant have used."""
        return self._registry.usages

    @property
    def memory(self) -> MemoryCount:
        return self._device_thread.memory()

    @property
    def device_busy_ns(self) -> int:
        return self._device_thread.busy_ns

    @property
    def is_ready(self) -> bool:
        """Tells whether the server can do what clients send."""
        return self._device_thread.is_running and not self.is_broken

    @property
    def trouble(self) -> str:
        """Returns why the machine cannot compile programs now, or an empty text."""
        return self._plans.trouble

    @property
    def kernel_waits(self) -> Sequence[KernelWait]:
        """Returns the kernels that rows wait for, the longest wait first."""
        return self._plans.waits()

    @property
    def outstanding_submissions(self) -> int:
        """The number of submissions that the device has been told to run and has not completed."""
        return self._submissions.lanes.outstanding

    def start(self) -> None:
        self._device_thread.start()

    def break_if_device_stalls(self, now_ns: int) -> None:
        """Gives the device up if it does not finish its work, because sessions would wait for ever."""
        waited_ns = self._device_thread.waited_ns(now_ns)
        if not self.is_broken and waited_ns > self.config.device.stall_s * 1e9:
            text = f"the device has not finished its oldest work for {waited_ns / 1e9:.0f} s; device.stall_s ="
            self._break(ServerFault(f"{text} {self.config.device.stall_s}"))

    def stop(self, timeout_s: float) -> None:
        """Orders the release of all values that ended sessions held, and ends the device thread after its orders.

        Blocks for at most `timeout_s`. Runs on any thread.
        """
        self._device_thread.stop(timeout_s, (*self._orders.take(), *self._ended_sessions.releases()))

    def reconfigure(self, config: Config) -> None:
        """Takes over a configuration that differs only in settings that may change in service."""
        self.config = config
        self._registry.limits = config.limits
        self._uploads.wait_s = _upload_wait_s(config.limits)

    @property
    def upload_wait_s(self) -> float:
        """How long the halves of an upload, its declaration and its call, wait for each other."""
        return self._uploads.wait_s

    # ---- sessions ----

    def open(
        self, tenant: str, client: str, peer: str, name: str = "", labels: Mapping[str, str] | None = None
    ) -> Session:
        """Opens a session. `name` and `labels` are only shown.

        Raises CaseError if a limit allows no more sessions, or if the server is draining.
        """
        if self.is_draining:
            raise CaseError("draining", "the server is draining and opens no new sessions")
        session = self._registry.open(tenant, client, peer)
        session.name, session.labels = name, labels or {}
        self._backlog.open(session)
        self.counters.sessions_opened += 1
        return session

    def resume(self, session_id: bytes, instance: bytes, tenant: str, acknowledged: int) -> Session:
        """Returns the session of a client that lost its stream.

        Raises CaseError if the session has ended or belongs to another tenant.
        """
        if self.is_draining and session_id not in self.sessions:
            raise CaseError("draining", "the server is shutting down")
        known = self.sessions.get(session_id)
        had_sent = known is not None and known.has_sent
        session = self._registry.resume(session_id, instance, tenant, acknowledged)
        self._bulk_calls.end(session)
        self._uploads.resume(session)
        self._reads.go_on(session)
        self.counters.sessions_resumed += had_sent  # one that had not only moves to a local call
        return session

    def attach(self, session: Session, wake: Callable[[], None]) -> None:
        """Gives a session its stream.

        `wake` is called when the session has something to send, or when it gets another stream.
        """
        self._registry.attach(session, wake)

    def detach(self, session: Session, epoch: int) -> None:
        """Keeps a session after the stream of `epoch` broke, so that its client can resume it.

        Ends a session that is to be ended anyway.
        """
        self._registry.detach(session, epoch)
        if session.dismissal is not None and session.state is SessionState.DETACHED:
            self.end(session, session.dismissal.case.name)

    def carrying(self, session: Session) -> AbstractContextManager[None]:
        """Cancels the current task if the session ends while the `with` body runs.

        Raises CaseError if the session has too many calls.
        """
        return self._bulk_calls.carrying(session)

    def drain(self, ends_at_ns: int) -> None:
        """Opens no more sessions from now on, and wakes all streams, which tell their clients.

        `ends_at_ns` is the time on the monotonic clock at which the caller dismisses all sessions.
        """
        self.is_draining = True
        self.drain_ends_at_ns = ends_at_ns
        for session in self.sessions.values():
            self._registry.wake(session)

    def dismiss(self, sessions: Iterable[Session], reason: CaseError) -> None:
        """Has the stream of each session tell its client the reason and end it. Ends detached sessions at once."""
        for session in list(sessions):
            session.dismissal = reason
            if session.state is SessionState.DETACHED:
                self.end(session, reason.case.name)
            else:
                self._registry.wake(session)

    def end(self, session: Session, reason: str = BY_SERVER) -> None:
        """Ends a session and gives back everything that it holds. `reason` is one of `END_REASONS`."""
        if session.state is SessionState.CLOSED:
            return
        began_ns = self.clock.monotonic_ns()
        self._registry.take_out(session)
        self.counters.sessions_ended[reason] += 1
        self.counters.recently_ended.append(_ended(session, reason))
        self._submissions.remove_session(session)
        self._plans.remove_session(session)
        self._uploads.drop(session)
        self._bulk_calls.end(session)
        self._orders.add_release([session], session.large.values())
        self._ended_sessions.add(session, self._intake.close(session))
        self.charge(began_ns, session)  # its tenant's account stays
        self._backlog.drop(session)

    # ---- receive ----

    def receive(
        self,
        session: Session,
        number: int,
        programs: bytes,
        bindings: bytes,
        tensors: Sequence[bytes],
        began_ns: int,
    ) -> bool:
        """Applies a numbered frame or its first part. Returns whether the whole frame is applied.

        The time since `began_ns`, when the server began to parse the frame, counts as time of the session.

        If only the first part is applied, the backlog applies the rest in later turns of the event loop.
        Raises CaseError for a protocol error; the caller then ends the session.
        """
        if not session.accept(number):
            self.charge(began_ns, session)
            return True
        session.heard_at_ns = began_ns
        arrival = Arrival(tensors, began_ns)
        self.counters.frames += 1
        if programs or len(bindings) > SHORT_ITEM_BYTES or not frames.are_few(bindings):
            unread = frames.read_programs(programs), frames.read_entries(bindings, self._most_listed)
            return self._backlog.begin(session, Items((), *unread), arrival)
        entries = frames.decode_entries(bindings)
        if len(entries) > FEW_ENTRIES or not session.may_go_on or not self._backlog.has_time:
            return self._backlog.begin(session, Items(entries), arrival)
        following = iter(entries)
        left = self._apply(session, following, arrival, began_ns)
        return left is None or self._backlog.begin(session, Items((left, *following)), arrival)

    def _apply(self, session: Session, items: Iterable[Item], arrival: Arrival, began_ns: int) -> Item | None:
        """Applies items until an item takes more than one step. Returns the rest of that item, or None."""
        effects, left, error = self._intake.take(session, items, arrival)
        if error is not None:
            self._orders.add_release([session], effects.released)  # the tables no longer hold these values
            self.charge(began_ns, session)
            raise error
        self.counters.decode.add(self.clock.monotonic_ns() - began_ns)
        self._act(session, effects)
        self.charge(began_ns, session)
        return left

    def charge(self, began_ns: int, *sessions: Session) -> None:
        """Notes that the engine thread has worked for these sessions since `began_ns`, as much for each."""
        time_ns = self._backlog.used_ns(began_ns) // len(sessions)
        for session in sessions:
            self._backlog.charge(session, time_ns)

    def unapplied(self, session: Session) -> Unapplied | None:
        """Returns what `outcome_of` waits for, if something of the frames received so far is left to apply."""
        return self._backlog.unapplied(session)

    def acknowledge(self, session: Session, number: int) -> None:
        """Notes that the client has seen the result frames up to `number`.

        Raises CaseError if no frame of that number has been sent.
        """
        session.answers.acknowledge(number)
        self._reads.go_on(session)

    def downloaded(self, session: Session, fetch: int, beside: Beside) -> None:
        """Ends a call that carried an answer. The answer stays until its client says that it has it."""
        session.answers.end_download(fetch, beside)
        if session.state is not SessionState.CLOSED:
            self._reads.go_on(session)

    def claim_upload(self, session: Session, handle: int) -> asyncio.Future[Value | None]:
        """Returns a future of the value that an upload call will fill.

        The future is done when the stream declares the value. The result is None if the stream will never declare it.
        """
        return self._uploads.claim(session, handle)

    def give_up_upload(self, session: Session, handle: int, call: asyncio.Future[Value | None]) -> Value | None:
        """Ends an upload call's wait for the declaration of its value.

        Returns the value if the value was declared in this same turn of the event loop.
        """
        return self._uploads.give_up(session, handle, call)

    def upload_broken_off(self, session: Session, value: Value, text: str) -> None:
        """Lets an upload whose call has ended without all bytes wait for another; if none comes, it fails."""
        if session.state is not SessionState.CLOSED and value.state is ValueState.AWAITED:
            self._uploads.wait_for_call(session, value, text)

    def refuse_upload(self, session: Session, handle: int, error: CaseError) -> None:
        """Fails the upload of a refused call, now or when the stream declares it."""
        self._uploads.refuse(session, handle, error)

    def uploaded(self, session: Session, value: Value, data: Staged) -> None:
        """Orders the write of an upload's bytes, after all the declared bytes have arrived."""
        if session.state is SessionState.CLOSED:
            self.staging.give_back(session, value.size_bytes)
            return
        self._uploads.turn_away(session, value.handle)
        self._orders.add_write(orders.Write(session, value, data, NO_WORK))
        self._act(session, upload_effects.arrive(session, value))

    def upload_failed(self, session: Session, value: Value, text: str, *, case: str = "upload_failed") -> None:
        """Fails an upload that nobody brought, with wrong bytes or without memory, and the values that depend on it."""
        if session.state is not SessionState.CLOSED and value.state is ValueState.AWAITED:
            self._uploads.turn_away(session, value.handle)
            self._act(session, upload_effects.fail(session, value, Failure(BY_NAME[case], text, 0, 0)))

    def _act(self, session: Session, effects: Effects) -> None:
        """Orders the actions that follow from a change of a session's tables.

        The sequence of the actions keeps each value alive until the device has used it.
        """
        for value, data in effects.writes:
            session.uploading_bytes += len(data)
            self._orders.add_write(orders.Write(session, value, data, Amount(0, len(data), 0)))
        for value in effects.declared:
            self._uploads.declare(session, value)
        for handle in effects.refused_uploads:
            self._uploads.turn_away(session, handle)
        for failure in effects.failures:
            self.counters.failed(failure, session.shown_id, time.time())
        for entry in effects.to_plan:
            self._plans.plan(entry, session)
        self._reads.order(effects)
        self._orders.add_release([session], effects.released)
        self._reads.go_on(session)
        self._submissions.update(session)
        session.tenant_bytes.count(session)
        self._end_turn_soon()
        self._registry.wake(session)

    # ---- submit ----

    def _end_turn_soon(self) -> None:
        """Submits rows, and hands orders over, once all frames are applied that this turn of the event loop brings.

        So rows of the clients that are busy now share a submission.
        """
        if not self._is_turn_ending:
            self._is_turn_ending = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._is_turn_ending = False
        self._submissions.submit()
        self._orders.hand_over()
        self._backlog.end_turn()

    @property
    def is_held(self) -> bool:
        """Tells whether submissions are held back."""
        return self._submissions.is_held

    def hold(self) -> None:
        """Holds back submissions until `unhold`."""
        self._submissions.is_held = True

    def unhold(self) -> None:
        self._submissions.is_held = False
        self._submissions.submit()

    # ---- finish ----

    def _take_report(self, report: orders.Report) -> None:
        """Passes a report to the engine thread, which handles it in a later turn. Runs on any thread."""
        with self._reports_lock:
            self._reports.append(report)
            is_first = len(self._reports) == 1
        if is_first and threading.get_ident() == self._thread_id:
            self._loop.call_soon(self._finish_reports)
        elif is_first:
            self._loop.call_soon_threadsafe(self._finish_reports)

    def _finish_reports(self) -> None:
        with self._reports_lock:
            reports, self._reports = self._reports, []
        for report in reports:
            self._finish_or_break(report)
        self._end_turn()

    def _finish_or_break(self, report: orders.Report) -> None:
        """Handles a report. If that fails, the server is broken, because tables may be wrong; other reports go on."""
        try:
            self._finish(report)
        except Exception as error:
            log.exception("a report of the device thread could not be handled")
            self._break(error)

    def _break(self, error: BaseException) -> None:
        self.is_broken = True
        self.on_broken(error)

    def _finish(self, report: orders.Report) -> None:
        match report:
            case orders.Ran():
                self._submissions.finish(report)
            case orders.RunIsLong():
                self._submissions.mark_lasting(report.number)
            case orders.Brought() | orders.Missing():
                self._submissions.finish_read(report)
            case orders.Wrote():
                self._finish_writing(report)
            case orders.Loaded() | orders.Unloadable() | orders.Lacks():
                self._plans.take(report)
                self._count_plan(report)
            case orders.Broken():
                log.error("the device is broken: %r", report.error)
                self._break(report.error)

    def no_room(self, text: str, tenant: str) -> str:
        """Adds to a text about missing memory its setting, and which memory of the tenant is soon free by itself."""
        setting = f"{text}; device.memory_bytes = {self.device.info.memory_bytes}"
        detached = [
            each
            for each in self.sessions.values()
            if each.state is SessionState.DETACHED and each.tenant == tenant and each.live_bytes
        ]
        if not detached:
            return setting
        grace_s = self._registry.limits.resume_grace_s
        return (
            f"{setting}; {len(detached)} sessions that lost their connection keep their arrays until "
            f"limits.resume_grace_s = {grace_s:g} has passed"
        )

    def _count_plan(self, report: orders.Loaded | orders.Unloadable | orders.Lacks) -> None:
        """Counts the memory of a plan that has come for the tenants whose sessions hold its program."""
        if isinstance(report, orders.Loaded) and isinstance(report.key, ProgramEntry):
            self.programs.add_plan(report.key, report.loaded.plan)
            for session in self.sessions.values():
                session.tenant_bytes.program_bytes = self.programs.quota.tenant_bytes(session.session_id)

    def _finish_writing(self, wrote: orders.Wrote) -> None:
        session = wrote.write.session
        session.complete(wrote.write.credit)
        session.writes -= 1
        if isinstance(wrote.write.data, Staged):
            self.staging.give_back(session, wrote.write.value.size_bytes)
        else:
            session.uploading_bytes -= len(wrote.write.data)
        self._backlog.wrote(session)
        if session.state is SessionState.CLOSED:
            return
        if wrote.refusal is None and isinstance(wrote.write.data, bytes):
            self._registry.wake(session)  # nothing but the session's credit depends on the write
            return
        failure = None
        if wrote.refusal is not None:
            failure = Failure(BY_NAME["out_of_memory"], self.no_room(wrote.refusal, session.tenant), 0, 0)
        self._act(session, upload_effects.end_writing(wrote.write, failure))


def _ended(session: Session, reason: str) -> EndedSession:
    dismissal = "" if session.dismissal is None else session.dismissal.text
    return EndedSession(
        when(time.time()), session.shown_id, session.name, session.tenant, session.client, reason, dismissal
    )


def _upload_wait_s(limits: Limits) -> float:
    """Returns how long an upload waits for a call: no shorter than its client may take to connect again."""
    return max(limits.upload_stall_s, limits.resume_grace_s)


def _find_none(sources: Sequence[KernelSource]) -> None:
    return


def _raise(error: BaseException) -> None:
    raise error
