"""A session: it joins the recorders of its threads, the stream of frames and the transport. What waits, waits here.

Locks, in the order in which they may be taken: a recorder's, then the session's. None is held while waiting, nor
while the transport is woken. `hello`, `next_frame` and the methods named `on_…` belong to the I/O thread.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from threading import get_ident
from types import TracebackType
from typing import Any, NamedTuple, Self
from weakref import WeakSet

import numpy as np

from fusewire import _upload as uploading
from fusewire._array import Array
from fusewire._credit import Amount, Credit
from fusewire._cut import LARGEST_SEGMENT_OPS, Reach
from fusewire._errors import (
    ArgumentError,
    DtypeError,
    FusewireError,
    QuotaExceeded,
    SessionClosed,
    SessionLost,
    WaitTimeout,
)
from fusewire._fetched import BlockedReader, FutureValue, Value
from fusewire._operations import astype, dtype_of
from fusewire._programs import ProgramKey, Programs
from fusewire._recorder import Draft, Recorder
from fusewire._recording import Recorded, adopt
from fusewire._segments import Template, bind, build_template
from fusewire._signature import intern_spec
from fusewire._stream import ClientStream, Outgoing
from fusewire._transport import Transport
from fusewire_protos import dtypes
from fusewire_protos.errors import exception_of
from fusewire_protos.frames import (
    HANDLES_PER_RECORDER,
    INLINE_BYTES,
    Abandon,
    Cancel,
    Fetch,
    Forget,
    Free,
    NewProgram,
    Segment,
    Upload,
    shortest_period,
)
from fusewire_protos.shapes import Spec
from fusewire_protos.v1 import fusewire_pb2 as wire

_LEAST_TICK_S = 0.0005
_BUSY_TICK_S = 0.004
_IDLE_TICK_S = 0.1
_TICKS_A_ROUND = 40  # once a round, deaths that no segment took along are sent, and the I/O thread may fall asleep
_HEARTBEAT_AFTER_NS = 50_000_000  # until then the next frame is expected to carry the acknowledgement
_PARTING_S = 1.0


class Trigger(Enum):
    """Why a segment was cut."""

    COUNT = "count"  # enough ops
    CREDIT = "credit"  # enough ops, once credit had come back
    AGE = "age"  # its first op had waited long enough
    IDLE = "idle"  # the device had nothing else to do
    DEMAND = "demand"  # a value was asked for


@dataclass(frozen=True)
class SessionStats:
    """What a session has done so far."""

    ops_recorded: int
    segments: int
    fragments: int  # segments that are no whole bodies of a loop
    programs: tuple[str, ...]  # digests of the distinct programs sent, without fragments, sorted
    fragment_programs: tuple[str, ...]
    cuts: Mapping[str, int]  # segments by what triggered the cut
    sent_bytes: int  # in frames; bulk uploads travel beside
    in_flight: Amount
    unacknowledged_frames: int


class _Awaited(NamedTuple):
    """A value asked for."""

    fetch: int
    receiver: FutureValue | BlockedReader
    spec: Spec


class Session:
    """Made by `fusewire.connect`. Also a context manager, which closes it."""

    def __init__(self, transport: Transport, *, debug: bool, client: str) -> None:
        self._transport = transport
        self._is_debugging = debug
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # credit has come back, or the session has ended
        # All below is guarded by the lock.
        self._stream = ClientStream(client)
        self._credit = Credit(Amount())
        self._programs = Programs(0)
        self._limits = wire.Limits()
        self._recorders: dict[int, Recorder] = {}  # by thread; a thread that inherits an identifier inherits it
        self._awaited: dict[int, _Awaited] = {}
        self._last_fetch = 0
        self._cuts: Counter[Trigger] = Counter()
        self._fragments = 0
        self._ended: FusewireError | None = None  # why
        self._ready_waiters: list[Future[None]] = []
        self._is_welcome = False
        self.backend = ""
        # The I/O thread's alone.
        self._ticks = 0
        self._owes_heartbeat = False
        self._heard_at_ns = 0
        _sessions.add(self)

    # ---- what users call ----

    def array(self, data: Any, dtype: Any = None) -> Array:
        """Uploads anything with the buffer protocol or `__array__`, a scalar or nested lists.

        Returns when the bytes are copied: changing the source afterwards never changes the array. May wait for
        credit. Raises DtypeError for a dtype that cannot travel, QuotaExceeded for more than limits.array_bytes.
        """
        if isinstance(data, Recorded):
            return self._own(data, dtype)
        given = np.asarray(data)
        spec = uploading.spec_of(given, None if dtype is None else dtype_of(dtype))
        self.check_open()
        if spec.size_bytes > self._limits.array_bytes:
            text = f"an array of {spec.size_bytes} bytes; limits.array_bytes = {self._limits.array_bytes}"
            raise QuotaExceeded(text)
        host = uploading.sendable(given, spec)
        recorder = self.recorder()
        array = adopt(Array, recorder, recorder.mint_upload(), intern_spec(spec))
        if spec.size_bytes <= INLINE_BYTES:
            self._upload_inline(recorder, Upload(array._handle, spec, None), host.tobytes())
        else:
            self._upload_beside(Upload(array._handle, spec, None), host)
        return array

    def fetch(self, array: Recorded) -> Future[Value]:
        """The value when it is there. May wait for credit."""
        future = FutureValue(lambda: self.abandon(awaited.fetch))
        awaited = self._fetch(array, future, None)
        return future

    def read(self, array: Recorded, timeout: float | None) -> Value:
        """The value. WaitTimeout after `timeout` seconds; the work itself goes on."""
        deadline_s = None if timeout is None else time.monotonic() + timeout
        reader = BlockedReader()
        awaited = self._fetch(array, reader, deadline_s)
        if not reader.has_settled_within(_left(deadline_s)):
            if self.abandon(awaited.fetch):
                raise WaitTimeout(f"the value did not come within {timeout} s; the work goes on")
            reader.has_settled_within(None)  # it came just now
        return reader.outcome()

    def cancel(self) -> None:
        """Gives up all work that the device has not begun: what depends on it raises Cancelled."""
        self.check_open()
        for recorder in self._all_recorders():
            self._flush(recorder, Reach.EVERYTHING, Trigger.DEMAND, may_wait=False)
        self._post(Outgoing(Cancel()))

    async def ready(self) -> None:
        """Returns when a large segment could be sent at once: ops recorded after it do not block the event loop."""
        waiter: Future[None] = Future()
        with self._lock:
            self._check_open()
            if self._has_room():
                return
            self._ready_waiters.append(waiter)
        await asyncio.wrap_future(waiter)

    @property
    def stats(self) -> SessionStats:
        with self._lock:
            recorders = tuple(self._recorders.values())
            return SessionStats(
                ops_recorded=sum(recorder.ops_recorded for recorder in recorders),
                segments=self._cuts.total(),
                fragments=self._fragments,
                programs=self._programs.digests(are_fragments=False),
                fragment_programs=self._programs.digests(are_fragments=True),
                cuts={trigger.value: self._cuts[trigger] for trigger in Trigger},
                sent_bytes=self._stream.sent_bytes,
                in_flight=self._credit.in_flight,
                unacknowledged_frames=self._stream.unacknowledged_frames,
            )

    @property
    def is_open(self) -> bool:
        return self._ended is None

    def close(self) -> None:
        """Ends the session; its values are gone. Ops not yet sent are dropped: nobody can read them any more."""
        with self._lock:
            was_open = self._ended is None
            farewell = self._stream.goodbye() if was_open and self._is_welcome else None
        if was_open:
            self._end(SessionClosed("the session is closed"))
            self._transport.close(farewell, _PARTING_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "open" if self._ended is None else "ended"
        return f"<fusewire.Session {self._stream.session_id.hex()[:8]} {state} on {self.backend or 'no backend'}>"

    # ---- recording threads ----

    @property
    def is_credit_free(self) -> bool:
        return self._credit.is_free

    def recorder(self) -> Recorder:
        """The calling thread's recorder."""
        thread = get_ident()
        recorder = self._recorders.get(thread)
        return recorder if recorder is not None else self._new_recorder(thread)

    def check_open(self) -> None:
        """Raises why the session has ended, if it has. Takes no lock: after a fork another thread may have held it."""
        if self._ended is not None:
            raise type(self._ended)(str(self._ended))

    def note_unsent(self) -> None:
        self._transport.wake()

    def flush_settled(self, recorder: Recorder) -> None:
        self._flush(recorder, Reach.SETTLED, Trigger.COUNT, may_wait=True)

    def publish(self, recorder: Recorder, handle: int) -> None:
        if recorder.is_unsent(handle):
            self._flush(recorder, Reach.EVERYTHING, Trigger.DEMAND, may_wait=True)

    def abandon(self, fetch: int) -> bool:
        """Forgets a fetch; False if it has been answered."""
        with self._lock:
            if self._awaited.pop(fetch, None) is None:
                return False
        self._post(Outgoing(Abandon(fetch)))
        return True

    # ---- the I/O thread ----

    def hello(self) -> bytes:
        with self._lock:
            return self._stream.hello()

    def next_frame(self) -> bytes | None:
        with self._lock:
            raw = self._stream.next_frame()
            if raw is not None or not self._owes_heartbeat:
                return raw
            self._owes_heartbeat = False
            return self._stream.heartbeat() if self._stream.owes_acknowledgement else None

    def on_frame(self, raw: bytes) -> bool:
        frame = wire.ServerFrame.FromString(raw)
        self._heard_at_ns = time.monotonic_ns()
        if frame.HasField("welcome"):
            self._on_welcome(frame)
        with self._lock:
            is_new = self._stream.on_frame(frame)
            answered = [(result, self._awaited.get(result.fetch)) for result in frame.results] if is_new else []
            is_idle = frame.HasField("completed") and self._complete(frame.completed)
        for result, awaited in answered:
            if awaited is not None:
                self._on_result(result, awaited)
        if frame.HasField("goodbye"):
            self._on_goodbye(frame.goodbye)
        if is_idle:
            self._flush_all(Reach.SETTLED, Trigger.IDLE)
        return not frame.results or frame.HasField("completed")

    def on_tick(self) -> float:
        if self._ended is not None:
            return _IDLE_TICK_S
        now_ns = time.monotonic_ns()
        self._flush_aged(now_ns)
        self._ticks += 1
        if self._ticks % _TICKS_A_ROUND:
            return self._active_tick_s(now_ns)
        self._send_frees()
        if any(recorder.has_unsent for recorder in self._all_recorders()):
            return self._active_tick_s(now_ns)
        self._ticks -= 1  # asleep: the next tick is the last of a round again
        is_quiet = time.monotonic_ns() - self._heard_at_ns > _HEARTBEAT_AFTER_NS
        self._owes_heartbeat = is_quiet and self._stream.owes_acknowledgement
        return _IDLE_TICK_S

    def on_download(self, fetch: int, raw: bytearray | memoryview | None) -> None:
        awaited = self._take_awaited(fetch)
        if awaited is None:
            return
        if raw is None:
            awaited.receiver.set_exception(SessionLost("the connection broke while the value travelled"))
        else:
            _fulfil(awaited, raw)

    def on_lost(self, error: FusewireError) -> None:
        self._end(error)

    # ---- waiting for the server ----

    def open(self, timeout_s: float) -> None:
        """Connects. Raises what keeps the server from welcoming us, or WaitTimeout."""
        self._transport.open(self)
        with self._changed:
            is_answered = self._changed.wait_for(lambda: self._is_welcome or self._ended is not None, timeout_s)
        if not is_answered:
            self.close()
            raise WaitTimeout(f"the server did not answer within {timeout_s} s")
        self.check_open()

    def _wait_for_credit(self, recorder: Recorder, cost: Amount, deadline_s: float | None) -> None:
        self._post_frees(recorder)  # they may be what the server waits for
        self._transport.wake()
        with self._changed:
            is_there = self._changed.wait_for(
                lambda: self._ended is not None or self._credit.admits(cost), _left(deadline_s)
            )
        self.check_open()
        if not is_there:
            raise WaitTimeout("no credit came back in time; the work goes on")

    # ---- sending ----

    def _flush(
        self,
        recorder: Recorder,
        reach: Reach,
        trigger: Trigger,
        *,
        may_wait: bool,
        deadline_s: float | None = None,
    ) -> None:
        """Sends what `reach` covers, as credit allows."""
        is_urgent = trigger is not Trigger.COUNT or self._credit.is_free
        while True:
            with recorder.lock:
                refused = self._send_pieces(recorder, reach, trigger)
            if refused is None or not may_wait:
                break
            self._wait_for_credit(recorder, refused, deadline_s)
            trigger = Trigger.CREDIT if trigger is Trigger.COUNT else trigger
        if is_urgent:  # else the device is busy, and the I/O thread's next tick is soon enough
            self._transport.wake()

    def _send_pieces(self, recorder: Recorder, reach: Reach, trigger: Trigger) -> Amount | None:
        """Under the recorder's lock: sends piece after piece; returns the cost of the first one refused."""
        while (draft := recorder.draft(reach)) is not None:
            key = ProgramKey(draft.structure.key, draft.liveness.live, draft.piece.is_fragment)
            template = self._template(key, draft)
            cost = Amount(draft.piece.ops, template.live_bytes, 1)
            if not self._send(recorder, draft, key, template, cost, trigger):
                return cost
        return None

    def _send(
        self, recorder: Recorder, draft: Draft, key: ProgramKey, template: Template, cost: Amount, trigger: Trigger
    ) -> bool:
        entry = _segment(draft, template)
        with self._lock:
            self._check_open()
            if not self._credit.admits(cost):
                return False
            number, is_new, forgotten = self._programs.number(key)
            new = NewProgram(number, key.is_fragment, template.raw) if is_new else None
            self._stream.post(Outgoing(entry._replace(program=number), new))
            self._stream.post(*(Outgoing(Forget(program)) for program in forgotten))
            if draft.liveness.freed:
                self._stream.post(Outgoing(Free(tuple(draft.liveness.freed))))
            recorder.commit(draft)
            self._credit.take(cost)
            self._cuts[trigger] += 1
            self._fragments += key.is_fragment
        return True

    def _template(self, key: ProgramKey, draft: Draft) -> Template:
        with self._lock:
            template = self._programs.template(key)
        if template is None:
            template = build_template(draft.records, draft.structure, draft.liveness.live)
            with self._lock:
                self._programs.keep(key, template)
        return template

    def _flush_all(self, reach: Reach, trigger: Trigger) -> None:
        for recorder in self._all_recorders():
            self._flush_if_free(recorder, reach, trigger)

    def _flush_if_free(self, recorder: Recorder, reach: Reach, trigger: Trigger) -> None:
        """From the I/O thread, which waits for nobody: a recorder in use is being flushed already."""
        if recorder.has_unsent and recorder.lock.acquire(blocking=False):
            try:
                self._send_pieces(recorder, reach, trigger)
            finally:
                recorder.lock.release()

    def _flush_aged(self, now_ns: int) -> None:
        for recorder in self._all_recorders():
            reach = recorder.due(now_ns)
            if reach is not None and self._credit.is_free:
                self._flush_if_free(recorder, reach, Trigger.AGE)

    def _active_tick_s(self, now_ns: int) -> float:
        """When to look again: sooner than needed would only take turns from the threads that record.

        While the device is busy no age counts, and what is posted may gather: once it idles, a frame tells.
        """
        if not self._credit.is_free:
            return _BUSY_TICK_S
        ripe_ns = min((recorder.ripens_in_ns(now_ns) for recorder in self._all_recorders()), default=0)
        return max(ripe_ns / 1e9, _LEAST_TICK_S)

    def _send_frees(self) -> None:
        for recorder in self._all_recorders():
            if recorder.buried:
                self._post_frees(recorder)

    def _post_frees(self, recorder: Recorder) -> None:
        with recorder.lock:
            freed = recorder.take_frees()
            if freed:
                self._post(Outgoing(Free(tuple(freed))), wake=False)

    def _post(self, *outgoing: Outgoing, wake: bool = True) -> None:
        with self._lock:
            self._stream.post(*outgoing)
        if wake:
            self._transport.wake()

    # ---- uploads ----

    def _own(self, array: Any, dtype: Any) -> Array:
        if array._recorder.owner is not self:
            raise ArgumentError("the array belongs to another session; fetch it and upload it here")
        own: Array = array if dtype is None else astype(array, dtype, copy=False)
        return own

    def _upload_inline(self, recorder: Recorder, upload: Upload, tensor: bytes) -> None:
        cost = Amount(bytes=len(tensor))
        while True:
            with self._lock:
                self._check_open()
                if self._credit.admits(cost):
                    self._credit.take(cost)
                    self._stream.post(Outgoing(upload, tensor=tensor))
                    break
            self._wait_for_credit(recorder, cost, None)
        self._transport.wake()

    def _upload_beside(self, upload: Upload, host: uploading.Host) -> None:
        self._post(Outgoing(upload))
        sink = self._transport.upload(self._stream.session_id, upload.handle)
        try:
            for chunk in uploading.copy_in_chunks(host, self._limits.chunk_bytes):
                sink.put(chunk)
        finally:
            sink.finish()

    # ---- fetches and results ----

    def _fetch(self, array: Recorded, receiver: FutureValue | BlockedReader, deadline_s: float | None) -> _Awaited:
        self.check_open()
        producer = array._recorder
        if producer.is_unsent(array._handle):
            self._flush(producer, Reach.EVERYTHING, Trigger.DEMAND, may_wait=True, deadline_s=deadline_s)
        with self._lock:
            self._check_open()
            self._last_fetch += 1
            awaited = _Awaited(self._last_fetch, receiver, array._spec.spec)
            self._awaited[self._last_fetch] = awaited
            self._stream.post(Outgoing(Fetch(self._last_fetch, array._handle)))
        self._transport.wake()
        return awaited

    def _on_result(self, result: wire.Result, awaited: _Awaited) -> None:
        kind = result.WhichOneof("answer")
        if kind == "beside_bytes":
            self._transport.download(self._stream.session_id, result.fetch, result.beside_bytes)
            return
        if self._take_awaited(result.fetch) is None:
            return
        if kind == "failure":
            awaited.receiver.set_exception(self._exception(result.failure))
        else:
            _fulfil(awaited, bytearray(result.inline))

    def _take_awaited(self, fetch: int) -> _Awaited | None:
        """Whoever takes a fetch answers it: a result, a cancellation or the end of the session."""
        with self._lock:
            return self._awaited.pop(fetch, None)

    def _exception(self, failure: wire.Failure) -> FusewireError:
        return exception_of(failure.code, self._located(failure))

    def _located(self, failure: wire.Failure) -> str:
        """The failure's text, with the line of the user's code that recorded the op."""
        number = failure.base + failure.op_index
        for recorder in self._all_recorders():
            if recorder.first // HANDLES_PER_RECORDER == number // HANDLES_PER_RECORDER:
                position = recorder.position(number)
                return f"{failure.text} ({position})" if position else failure.text
        return failure.text

    # ---- the session's life ----

    def _on_welcome(self, frame: wire.ServerFrame) -> None:
        welcome = frame.welcome
        with self._changed:
            self._stream.on_welcome(frame)
            self._credit = Credit(Amount(welcome.credit.ops, welcome.credit.bytes, welcome.credit.segments))
            self._limits = welcome.limits
            # A frame's programs are numbered before its entries forget any, so some room is left.
            self._programs = Programs(max(welcome.limits.programs // 2, 1))
            self.backend = welcome.backend
            self._is_welcome = True
            self._changed.notify_all()

    def _on_goodbye(self, goodbye: wire.Goodbye) -> None:
        if goodbye.code:
            self._end(exception_of(goodbye.code, goodbye.text))
        else:
            self._end(SessionClosed(goodbye.text or "the server ended the session"))

    def _complete(self, completed: wire.Completed) -> bool:
        """Credit has come back; says whether nothing is in flight now."""
        self._credit.complete(Amount(completed.ops, completed.bytes, completed.segments))
        self._changed.notify_all()
        if self._ready_waiters and self._has_room():
            waiters, self._ready_waiters = self._ready_waiters, []
            for waiter in waiters:
                waiter.set_result(None)
        return self._credit.is_free

    def _has_room(self) -> bool:
        return self._credit.admits(Amount(LARGEST_SEGMENT_OPS, 0, 1))

    def _end(self, error: FusewireError) -> None:
        with self._changed:
            if self._ended is not None:
                return
            self._ended = error
            awaited, self._awaited = self._awaited, {}
            waiters, self._ready_waiters = self._ready_waiters, []
            self._changed.notify_all()
        for recorder in self._all_recorders():
            recorder.end()
        for each in awaited.values():
            each.receiver.set_exception(type(error)(str(error)))
        for waiter in waiters:
            waiter.set_exception(type(error)(str(error)))

    def _check_open(self) -> None:
        """As `check_open`, under the lock."""
        self.check_open()

    def _all_recorders(self) -> tuple[Recorder, ...]:
        return tuple(self._recorders.values())

    def _new_recorder(self, thread: int) -> Recorder:
        self.check_open()
        with self._lock:
            index = len(self._recorders) + 1
            recorder = Recorder(self, index, thread, is_debugging=self._is_debugging)
            self._recorders[thread] = recorder
        return recorder

    def _die_in_child(self) -> None:
        """After a fork: this process shares the parent's socket and must not use it."""
        self._ended = SessionClosed("the session belongs to the process that forked this one; connect again here")
        self._lock = threading.Lock()  # another thread of the parent may have held the old one for ever
        self._changed = threading.Condition(self._lock)
        for recorder in self._all_recorders():
            recorder.lock = threading.Lock()
            recorder.end()


_sessions: WeakSet[Session] = WeakSet()


def close_all() -> None:
    """At exit."""
    for session in tuple(_sessions):
        session.close()


def _end_all_in_child() -> None:
    for session in tuple(_sessions):
        session._die_in_child()


os.register_at_fork(after_in_child=_end_all_in_child)


def _segment(draft: Draft, template: Template) -> Segment:
    """The entry, but for the program's number."""
    scalars, starts = bind(template, draft.values)
    place = {handle: position for position, handle in enumerate(draft.structure.inputs)}
    return Segment(
        program=0,
        base=draft.first,
        inputs=tuple(draft.structure.inputs),
        scalars=shortest_period(scalars),
        starts=tuple(int(start) for start in shortest_period(starts)),
        dying=tuple(sorted(place[handle] for handle in draft.liveness.dying)),
    )


def _fulfil(awaited: _Awaited, raw: bytearray | memoryview) -> None:
    try:
        dtype = dtypes.to_numpy(awaited.spec.dtype)
    except DtypeError as error:
        awaited.receiver.set_exception(error)
        return
    awaited.receiver.set_result(np.frombuffer(raw, dtype).reshape(awaited.spec.shape))


def _left(deadline_s: float | None) -> float | None:
    return None if deadline_s is None else max(deadline_s - time.monotonic(), 0.0)
