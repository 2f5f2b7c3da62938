"""Defines the session: its methods for users, for recorders and for the transport, and its life from welcome to end.

A session is made of parts. All parts share `session_state`. `sender` and `upload_sender` fill the stream, `fetches`
waits for answers, and `session_timer` does the periodic work. The I/O thread calls `hello`, `next_frame` and the
methods named `on_…`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Self
from weakref import WeakSet

from google.protobuf.message import DecodeError

from fusewire._api.array import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.explaining import Explaining
from fusewire._api.explanation import Explanation
from fusewire._api.hints import Counted
from fusewire._api.indexing.index_checks import IndexChecks
from fusewire._api.ops.operations import astype, dtype_of
from fusewire._api.ops.stacking import array_among, stacked
from fusewire._api.read_values import ReadValues
from fusewire._errors import (
    ArgumentError,
    DtypeError,
    FusewireError,
    ProtocolError,
    QuotaExceeded,
    SessionClosed,
    SessionLost,
    WaitTimeout,
)
from fusewire._profile.profile import note_closing, note_open
from fusewire._recording.cutting.cutter import LARGEST_SEGMENT_OPS, CutScope
from fusewire._recording.cutting.drafts import Draft
from fusewire._recording.pinned_handles import HandlePin
from fusewire._recording.recorded_ops import Recorded, note_read, recorded_without_handle
from fusewire._recording.recorder import Recorder
from fusewire._recording.signature import intern_spec
from fusewire._recording.thread_recorders import ThreadRecorders
from fusewire._stream import tensor_bytes
from fusewire._stream.credit import Credit, amount_of
from fusewire._stream.fetches import Fetches
from fusewire._stream.frames import NO_WISH, Wish
from fusewire._stream.numbered_programs import Programs
from fusewire._stream.profiling import Profiling
from fusewire._stream.receivers import FutureValue, Value, end_quietly
from fusewire._stream.resumption import Resumption
from fusewire._stream.sender import Sender, Trigger
from fusewire._stream.session_state import SessionState
from fusewire._stream.session_timer import SessionTimer
from fusewire._stream.upload_sender import UploadSender
from fusewire._transport.deadlines import deadline_after, left_s
from fusewire._transport.interface import Attempt, ConnectionCut, Transport
from fusewire._transport.io_thread import FORKED
from fusewire._transport.local_channel import LocalOffer
from fusewire_protos.credit import Amount
from fusewire_protos.errors import exception_of
from fusewire_protos.local_calls.parts import NAME_PREFIX
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.session_name import shown_id
from fusewire_protos.v1 import fusewire_pb2 as wire

_log = logging.getLogger("fusewire")

_PARTING_S = 1.0
_MOST_WISHED_PROGRAMS = 8
_MESSAGE_MARGIN_BYTES = 1 << 20  # by which a frame of the server may be longer than the longest of a client
RECONNECT_S = 30.0
_GONE = "all values of the session are gone: connect again, and upload or compute anew what you need"
_LARGEST_SEGMENT = Amount(LARGEST_SEGMENT_OPS, 0, 1)


@dataclass(frozen=True)
class SessionStats:
    """Counts of a session's work so far."""

    ops_recorded: int
    segments: int
    fragments: int  # segments that are not whole bodies of a loop
    programs: tuple[str, ...]  # digests of the last 1,024 distinct programs, sorted, without fragments
    fragment_programs: tuple[str, ...]  # digests of the last 1,024 distinct fragments, sorted
    cuts: Mapping[str, int]  # value of a `Trigger` -> number of the segments that were cut for this reason
    sent_bytes: int  # in frames, without large uploads
    in_flight: Amount
    unacknowledged_frames: int


class Session:
    """A connection to a server, and the arrays on this server. `fusewire.connect` makes a session.

    A session is a context manager, which closes the session when the block ends. `server` is the name and version of
    its server, `backend` says what computes there, and `is_draining` whether the server has said that it shuts down.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        debug: bool,
        client: str,
        reconnect_s: float = RECONNECT_S,
        wish: Wish = NO_WISH,
    ) -> None:
        self._state = SessionState(transport, client, wish)
        self._thread_recorders = ThreadRecorders(self)
        self._sender = Sender(self._state, self._thread_recorders)
        self._upload_sender = UploadSender(self._state, self._sender)
        self._fetches = Fetches(self._state, self._sender, self._thread_recorders)
        self._explaining = Explaining(self._fetches, self._thread_recorders)
        self._timer = SessionTimer(self._state, self._sender, self._thread_recorders)
        # Guarded by the state's lock.
        self._ready_waiters: list[Future[None]] = []
        self._is_welcome = False
        self._resumption = Resumption(reconnect_s)
        self._local_offer: LocalOffer | None = None  # of the last welcome
        self.index_checks = IndexChecks() if debug else None
        self.read_values = ReadValues()
        self.backend = ""
        self.server = ""  # name and version
        self.is_draining = False  # whether the server has said that it shuts down, and soon ends this session
        _sessions.add(self)

    # ---- for users ----

    def array(self, data: Any, dtype: Any = None) -> Array:
        """Uploads an object with the buffer protocol or `__array__`, a scalar, or nested lists; stacks arrays in lists.

        Returns when the bytes are copied, so changing `data` afterwards does not change the array. May wait for credit.
        Raises DtypeError for an unsupported dtype, OverflowError for a Python integer that `dtype` cannot hold, and
        QuotaExceeded for an array of more than limits.array_bytes.
        """
        if isinstance(data, Recorded):
            return self._own(data, dtype)
        if array_among(data) is not None:
            return self._own(stacked(self, data), dtype)
        wanted = None if dtype is None else dtype_of(dtype)
        given = tensor_bytes.host_of(data, wanted)
        if given.dtype.kind == "c" or (wanted is not None and wanted.is_complex):
            return self._complex_array(given, wanted)
        spec = tensor_bytes.spec_of(given, wanted)
        self.check_open()
        limit_bytes = self._state.limits.array_bytes
        if spec.size_bytes > limit_bytes:
            raise QuotaExceeded(f"an array of {spec.size_bytes} bytes; limits.array_bytes = {limit_bytes}")
        host = tensor_bytes.sendable(given, spec)
        array = recorded_without_handle(Array, self.recorder(), intern_spec(spec, limit_bytes))
        self._upload_sender.send(array, host)
        return array

    def _complex_array(self, given: Any, dtype: DType | None) -> Array:
        """Uploads complex numbers as their two parts. Raises DtypeError for a real `dtype`."""
        wanted = dtype_of(given.dtype) if dtype is None else dtype
        if not wanted.is_complex:
            raise DtypeError(f"{given.dtype.name} is not cast to {wanted.name}; upload its real part")
        part = dtypes.part_of(wanted)
        return ComplexArray(self.array(given.real, part), self.array(given.imag, part))

    def fetch(self, array: Recorded) -> Future[Value]:
        """Returns a future of the value. May wait for credit."""
        if isinstance(array, ComplexArray):
            return array.future()
        self._check_own(array)
        note_read()
        numbers = self._fetch_index_checks()
        value = self._fetches.future(array)
        return value if self.index_checks is None or not numbers else self.index_checks.guarded(value, numbers)

    def read(self, array: Recorded, timeout: float | None) -> Value:
        """Waits for the value. Raises WaitTimeout after `timeout` seconds; the work itself goes on."""
        if isinstance(array, ComplexArray):
            return array.numpy(timeout)
        self._check_own(array)
        note_read()
        numbers = self._fetch_index_checks()
        handle = array._handle
        value = self._fetches.read(array, timeout)
        error = None if self.index_checks is None else self.index_checks.error_of(numbers, timeout)
        if error is not None:
            raise error
        if array._handle == handle:  # not if another thread has assigned to the array meanwhile
            self.read_values.keep(handle, value)
        return value

    def cancel(self) -> None:
        """Cancels all work that the device has not begun. Reading a value that depends on this work raises Cancelled.

        May wait for credit. Ops that other threads record before this call returns may be cancelled too. The body of a
        loop or function that is being recorded is not cancelled. A call in the callback of a future cannot wait, so it
        does not cancel ops for which there is no credit yet.
        """
        self.check_open()
        self._sender.give_up()

    def line_of(self, handle: int) -> str:
        """Returns the line of your code that recorded the op with this result, such as "recorded at loop.py:12".

        The handle is base + op, as inspection tells both of a slow segment or an array. Returns an empty text if the
        line is not known. Lines are known of the last 65,536 ops of each thread.
        """
        return str(self._thread_recorders.source_line(handle) or "")

    def explain(self, array: Recorded | None = None, *, timeout: float | None = None) -> Explanation:
        """Explains how the server runs the session's programs, or the program that made `array`.

        Sends no op: what is unsent is said to be unsent. Waits for a round trip; raises WaitTimeout after `timeout`
        seconds. The programs are those that were used last, at most 64. Of each the lines are those of its last use, or
        of the use that made `array`.
        """
        if array is not None:
            self._check_own(array)
        stats, uploads = self.stats, self._upload_sender
        counted = Counted(
            stats.cuts,
            stats.ops_recorded,
            stats.fragments,
            len(stats.fragment_programs),
            uploads.inline_count,
            uploads.repeats,
        )
        return self._explaining.explain(array, timeout, counted)

    async def ready(self) -> None:
        """Waits until there is credit for a large segment, so that recording ops does not block the event loop."""
        waiter: Future[None] = Future()
        with self._state.lock:
            self._state.check_open()
            if self._state.credit.admits(_LARGEST_SEGMENT):
                return
            self._ready_waiters.append(waiter)
        self._state.transport.wake()
        await asyncio.wrap_future(waiter)

    def newest_programs(self) -> tuple[bytes, ...]:
        """Returns digests of the programs that the session has used last, for the next session of this process."""
        with self._state.lock:
            return self._sender.programs.newest_digests(_MOST_WISHED_PROGRAMS)

    @property
    def stats(self) -> SessionStats:
        """Returns counts of the session's work so far."""
        sender, state = self._sender, self._state
        with state.lock:
            return SessionStats(
                ops_recorded=sum(recorder.ops_recorded for recorder in self._thread_recorders.all()),
                segments=sender.cuts.total(),
                fragments=sender.fragments,
                programs=sender.programs.digests(are_fragments=False),
                fragment_programs=sender.programs.digests(are_fragments=True),
                cuts={trigger.value: sender.cuts[trigger] for trigger in Trigger},
                sent_bytes=state.stream.sent_bytes,
                in_flight=state.credit.in_flight,
                unacknowledged_frames=state.stream.unacknowledged_frames,
            )

    @property
    def id(self) -> str:
        """The part of the session's id that inspection shows: 12 hexadecimal digits."""
        return shown_id(self._state.stream.session_id)

    @property
    def is_open(self) -> bool:
        """Whether the session has not ended."""
        return self._state.ended is None

    def close(self) -> None:
        """Ends the session and frees its values. Drops unsent ops, because their values can no longer be read."""
        if self.is_open and self._is_welcome:
            note_closing(self)
        if self._begin_to_close() and self._is_welcome:  # before the welcome, no goodbye is sent
            self._state.transport.wait_closed(_PARTING_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        open_state = "resuming" if self._resumption.is_under_way else "open"
        state = open_state if self.is_open else "ended"
        return f"<fusewire.Session {self.id} {state} on {self.backend or 'no backend'}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Returns the session itself, so that a deep copy of an object with arrays stays in its session."""
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a session is a connection of this process, and cannot be copied or pickled")

    # ---- profiles ----

    def begin_profile(self) -> Profiling:
        """Begins to note what the session does. The caller ends it."""
        profiling = Profiling(self._state, self._fetches, self._thread_recorders)
        profiling.begin()
        return profiling

    # ---- recording threads ----

    @property
    def is_idle(self) -> bool:
        return self._state.credit.is_free

    @property
    def credit_ops(self) -> int:
        return self._state.credit.limit.ops

    @property
    def limits(self) -> wire.Limits:
        return self._state.limits

    def recorder(self) -> Recorder:
        """Returns the calling thread's recorder."""
        return self._thread_recorders.own()

    def shared_recorder(self) -> Recorder:
        """Returns the recorder that threads use in turns (see `ThreadRecorders.shared`)."""
        return self._thread_recorders.shared()

    def check_open(self) -> None:
        """Raises the reason of the session's end, if it has ended."""
        self._state.check_open()

    def note_unsent(self) -> None:
        if self._timer.wakes_up():
            self._state.transport.want_tick()

    def flush_settled(self, recorder: Recorder) -> bool:
        return self._sender.flush(recorder, CutScope.SETTLED, Trigger.COUNT, may_wait=True) is None

    def flush_all(self, recorder: Recorder) -> None:
        self._sender.flush(recorder, CutScope.EVERYTHING, Trigger.BODY, may_wait=True)

    def pin(self, handle: int) -> HandlePin:
        recorder = self._thread_recorders.of(handle)
        assert recorder is not None, "every handle has its recorder"
        return recorder.pin(handle)

    def send_body(self, recorder: Recorder, draft: Callable[[], Draft]) -> None:
        self._sender.send_body(recorder, draft)

    def publish(self, recorder: Recorder, handle: int) -> None:
        if recorder.is_unsent(handle):
            self._sender.flush(recorder, CutScope.EVERYTHING, Trigger.DEMAND, may_wait=True)

    # ---- the transport's threads: see `Peer` ----

    def hello(self) -> bytes:
        with self._state.lock:
            return self._state.stream.hello()

    def next_frame(self) -> bytes | None:
        stream, timer = self._state.stream, self._timer
        with self._state.lock:
            raw = stream.next_frame()
            if raw is not None or not timer.owes_heartbeat:
                return raw
            timer.owes_heartbeat = False
            return stream.heartbeat() if stream.owes_acknowledgement else None

    def on_frame(self, raw: bytes) -> bool:
        frame = _decoded(raw)
        self._timer.heard_at_ns = time.monotonic_ns()
        is_welcome, has_completed = frame.HasField("welcome"), frame.HasField("completed")
        if is_welcome:
            self._on_welcome(frame)
        with self._state.lock:
            is_new = self._state.stream.on_frame(frame)
            is_idle = has_completed and self._complete(frame.completed)
        has_unsent = has_completed and self._thread_recorders.have_unsent
        if is_idle and has_unsent:
            self._sender.flush_idle()
        if self._ready_waiters:
            self._state.transport.call(self._let_ready)
        if is_new:
            self._take_results(frame)
        if frame.draining_ms or frame.HasField("goodbye"):
            self._state.transport.call(partial(self._on_last_frames, frame))
        return is_welcome or has_unsent or (has_completed and self._state.stream.waiting_entries > 0)

    def is_awaited(self) -> bool:
        state = self._state
        return self._fetches.are_awaited or bool(state.credit_waiters or self._ready_waiters)

    def on_tick(self) -> float:
        return self._timer.tick(time.monotonic_ns())

    def on_download(self, fetch: int, raw: bytearray | memoryview) -> None:
        self._fetches.on_download(fetch, raw)

    def on_download_failed(self, fetch: int, reason: Exception) -> None:
        self._fetches.on_download_failed(fetch, reason)

    def local_offer(self) -> LocalOffer | None:
        return self._local_offer

    def on_cut(self, reason: ConnectionCut) -> Attempt | None:
        state, resumption = self._state, self._resumption
        with state.lock:
            state.stream.is_connected = False
            if state.ended is not None or not self._is_welcome or self.is_draining:
                return None
            is_first = not resumption.is_under_way
            attempt = resumption.next_attempt(time.monotonic(), random.random())  # noqa: S311 - no secret
        if is_first and attempt is not None:
            _log.warning("lost the connection, resuming for up to %g s: %s", resumption.limit_s, reason)
        return attempt

    def on_lost(self, error: FusewireError) -> None:
        if self._resumption.is_under_way and isinstance(error, SessionLost):
            error = SessionLost(f"{error}; it was tried to resume for {self._resumption.limit_s:g} s; {_GONE}")
        self._end(error)

    # ---- the session's life ----

    def open(self, timeout_s: float) -> None:
        """Connects, and waits for the welcome. Raises the reason why there is no session, or WaitTimeout."""
        state, deadline_s = self._state, deadline_after(timeout_s)
        state.transport.open(self)
        try:
            with state.lock:  # a signal cannot interrupt entering the lock, but can interrupt entering the condition
                is_answered = state.changed.wait_for(
                    lambda: self._is_welcome or state.ended is not None, left_s(deadline_s)
                )
            if not is_answered:
                raise WaitTimeout(f"the server did not answer within {timeout_s} s")
        except BaseException:
            self.close()
            raise
        self.check_open()
        note_open(self)

    def _begin_to_close(self) -> bool:
        """Ends the session and sends a goodbye, over a new connection if need be. Returns False if it had ended."""
        state = self._state
        with state.lock:
            was_open = state.ended is None
            farewell = state.stream.goodbye() if was_open and self._is_welcome else None
        if was_open:
            self._end(SessionClosed("the session is closed"))
            state.transport.close(farewell)
        return was_open

    def _own(self, array: Any, dtype: Any) -> Array:
        self._check_own(array)
        own: Array = array if dtype is None else astype(array, dtype, copy=False)
        return own

    def _fetch_index_checks(self) -> list[FutureValue]:
        checks = self.index_checks
        return [] if checks is None else [self._fetches.future(each) for each in checks.take()]

    def _check_own(self, array: Recorded) -> None:
        if array._recorder.owner is not self:
            try:
                array._recorder.owner.check_open()
            except FusewireError as reason:
                raise ArgumentError(f"the array belongs to another session, which has ended: {reason}") from None
            raise ArgumentError("the array belongs to another session; fetch it there and upload it here")

    def _on_welcome(self, frame: wire.ServerFrame) -> None:
        state, welcome = self._state, frame.welcome
        with state.lock:
            state.stream.on_welcome(welcome, frame.acknowledged)
            if self._resumption.is_under_way:
                _log.info("the session is resumed")
            self._resumption.succeed()
            self._local_offer = _local_offer_of(welcome)
            if self._is_welcome:
                return
            state.credit = Credit(amount_of(welcome.credit))
            state.limits = welcome.limits
            # We keep half of the limit. The server registers all new programs of a frame before it forgets any, so the
            # other half leaves room for the new programs.
            self._sender.programs = Programs(max(welcome.limits.programs // 2, 1))
            self.backend, self.server = welcome.backend, welcome.server
            self._is_welcome = True
            state.changed.notify_all()

    def _take_results(self, frame: wire.ServerFrame) -> None:
        """Hands over the results of a frame. If a signal handler raises, all of them will come again."""
        for result in frame.results:  # late, because results wake threads, which compete for the GIL
            self._fetches.on_result(result)
        with self._state.lock:
            self._state.stream.took(frame)

    def _on_last_frames(self, frame: wire.ServerFrame) -> None:
        if frame.draining_ms:
            self._on_draining(frame.draining_ms)
        if frame.HasField("goodbye"):
            self._on_goodbye(frame.goodbye)

    def _on_draining(self, within_ms: int) -> None:
        with self._state.lock:
            self.is_draining = True
            self._state.changed.notify_all()
        _log.warning("the server shuts down: this session ends within %g s", within_ms / 1000)

    def _on_goodbye(self, goodbye: wire.Goodbye) -> None:
        if goodbye.code:
            reason = exception_of(goodbye.code, goodbye.text)
            self._end(SessionLost(f"{reason}; {_GONE}") if isinstance(reason, SessionLost) else reason)
        else:
            self._end(SessionClosed(goodbye.text or "the server ended the session"))

    def _complete(self, completed: wire.Completed) -> bool:
        """Takes back credit. Returns True if nothing is in flight now. The caller holds the state's lock."""
        credit = self._state.credit
        credit.complete(amount_of(completed))
        if self._state.credit_waiters:
            self._state.changed.notify_all()
        return credit.is_free

    def _let_ready(self) -> None:
        """Wakes who waits for credit for a large segment, if it is there."""
        with self._state.lock:
            if not self._state.credit.admits(_LARGEST_SEGMENT):
                return
            waiters, self._ready_waiters = self._ready_waiters, []
        for waiter in _not_cancelled(waiters):
            waiter.set_result(None)

    def _end(self, error: FusewireError) -> None:
        state = self._state
        with state.lock:
            if state.ended is not None:
                return
            state.ended = error
            waiters, self._ready_waiters = self._ready_waiters, []
            state.changed.notify_all()
        self._thread_recorders.end()
        self._fetches.end(error)
        for waiter in _not_cancelled(waiters):
            waiter.set_exception(type(error)(str(error)))
        state.transport.wake()  # a thread that receives has settled, and is to notice it

    def _die_in_child(self) -> None:
        """Ends the session in a forked child, which shares the parent's socket and must not use it."""
        self._state.ended = SessionClosed(FORKED)
        self._state.renew_locks()
        self._thread_recorders.renew_locks()
        self._thread_recorders.end()


def _decoded(raw: bytes) -> wire.ServerFrame:
    try:
        return wire.ServerFrame.FromString(raw)
    except DecodeError:
        raise ProtocolError(f"the server sent {len(raw)} bytes that are not a frame") from None


def _local_offer_of(welcome: wire.Welcome) -> LocalOffer | None:
    if not welcome.local_name.startswith(NAME_PREFIX):
        return None
    most_bytes = welcome.limits.message_bytes + _MESSAGE_MARGIN_BYTES
    return LocalOffer(welcome.local_name, welcome.local_secret, most_bytes, welcome.busy_poll_us)


def _not_cancelled(waiters: list[Future[None]]) -> Iterator[Future[None]]:
    """Yields the futures that are not cancelled. Marks each of them, so that it can no longer be cancelled."""
    return (waiter for waiter in waiters if waiter.set_running_or_notify_cancel())


_sessions: WeakSet[Session] = WeakSet()


def end_all() -> None:
    """Ends all sessions when Python exits, and lets nothing of it be shown."""
    end_quietly()
    close_all()


def close_all() -> None:
    """Closes all sessions. Waits for all goodbyes together, within one deadline."""
    closing = [session for session in tuple(_sessions) if session._begin_to_close()]
    deadline_s = time.monotonic() + _PARTING_S
    for session in closing:
        session._state.transport.wait_closed(max(deadline_s - time.monotonic(), 0.0))


def _end_all_in_child() -> None:
    for session in tuple(_sessions):
        session._die_in_child()


os.register_at_fork(after_in_child=_end_all_in_child)
