"""Keeps the table of fetches: which receiver waits for which value. Hands each answer to its receiver.

A fetch is answered by a result, by a cancellation or by the end of the session. The code that takes a fetch out of the
table also answers it, so no future is answered twice. A blocked reader may be: a signal handler may raise while its
thread takes the result, so the fetch stays in the table until the reader has settled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from fusewire._errors import DtypeError, FusewireError, RequestError, WaitTimeout
from fusewire._recording.cutting.cutter import CutScope
from fusewire._recording.recorded_ops import Recorded
from fusewire._recording.recorder import Recorder
from fusewire._recording.thread_recorders import ThreadRecorders
from fusewire._stream.frames import Outgoing
from fusewire._stream.numbered_programs import Programs, Use
from fusewire._stream.receivers import BlockedReader, FutureValue, Value
from fusewire._stream.sender import Sender, Trigger
from fusewire._stream.session_state import SessionState
from fusewire._transport.deadlines import deadline_after, left_s
from fusewire_protos.errors import exception_of
from fusewire_protos.frames import Abandon, Explain, Fetch, Profile
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.v1 import fusewire_pb2 as wire

_BYTES = Spec(dtypes.uint8, (-1,))  # of an answer that is no value: bytes, as many as come
_LINE_NOT_KNOWN = "the line that recorded it is not known any more"


Explained = tuple[Use, bytes | RequestError]


class _Awaited(NamedTuple):
    """A fetch that has no answer yet."""

    fetch: int
    receiver: FutureValue | BlockedReader
    spec: Spec


class Fetches:
    """The fetches of one session that have no answer yet."""

    def __init__(self, state: SessionState, sender: Sender, recorders: ThreadRecorders) -> None:
        self._state = state
        self._sender = sender
        self._thread_recorders = recorders
        # Guarded by the state's lock.
        self._awaited: dict[int, _Awaited] = {}
        self._last_fetch = 0

    # ---- users' threads ----

    def future(self, array: Recorded) -> FutureValue:
        """Returns a future of the value. May wait for credit."""
        future = FutureValue(self._abandon)
        future.fetch = self._fetch(array, future, None).fetch
        self._state.transport.wake()
        return future

    def read(self, array: Recorded, timeout: float | None) -> Value:
        """Waits for the value. Raises WaitTimeout after `timeout` seconds; the server still computes the value."""
        deadline_s = deadline_after(timeout)
        reader = BlockedReader()
        awaited = self._fetch(array, reader, deadline_s)
        profile = self._state.profile
        began_ns = 0 if profile is None else time.monotonic_ns()
        try:
            if not self._state.transport.wait(reader, left_s(deadline_s)):
                if self._abandon(awaited.fetch):
                    raise WaitTimeout(f"the value did not come within {timeout} s; the work goes on")
                reader.has_settled_within(None)  # the answer came after the timeout, just before `_abandon`
        finally:
            if profile is not None:
                profile.on_waited("read", began_ns, awaited.fetch)
        return reader.outcome()

    def explain(self, choose: Callable[[Programs], list[Use]], timeout: float | None) -> list[Explained]:
        """Asks the server how programs run, and waits for the answers. `choose` returns the last uses of them.

        Sends no op. Raises WaitTimeout after `timeout` seconds. A program that the server has rejected has the reason.
        """
        deadline_s = deadline_after(timeout)
        asked = self._post_explains(choose)
        self._state.transport.wake()
        found: list[Explained] = []
        for use, fetch, reader in asked:
            if not self._state.transport.wait(reader, left_s(deadline_s)) and self._abandon(fetch):
                raise WaitTimeout(f"the explanation did not come within {timeout} s")
            try:
                found.append((use, reader.outcome().tobytes()))
            except RequestError as reason:
                found.append((use, reason))
        return found

    def ask(self, *, goes_on: bool) -> tuple[int, BlockedReader]:
        """Posts the question how the session's segments ran. Returns its number, and what receives the answer.

        Does not wake the I/O thread: the question travels with what is sent next.
        """
        state, reader = self._state, BlockedReader()
        with state.lock:
            state.check_open()
            self._last_fetch += 1
            fetch = self._last_fetch
            self._awaited[fetch] = _Awaited(fetch, reader, _BYTES)
            state.stream.post(Outgoing(Profile(fetch, goes_on)))
        return fetch, reader

    def _post_explains(self, choose: Callable[[Programs], list[Use]]) -> list[tuple[Use, int, BlockedReader]]:
        """Posts the questions. Chooses under the lock, so that none of the programs is forgotten meanwhile."""
        state, asked = self._state, []
        with state.lock:
            state.check_open()
            for use in choose(self._sender.programs):
                self._last_fetch += 1
                asked.append((use, self._last_fetch, BlockedReader()))
                self._awaited[self._last_fetch] = _Awaited(self._last_fetch, asked[-1][2], _BYTES)
                state.stream.post(Outgoing(Explain(self._last_fetch, use.program)))
        return asked

    def _fetch(self, array: Recorded, receiver: FutureValue | BlockedReader, deadline_s: float | None) -> _Awaited:
        self._state.check_open()
        self._state.check_may_wait(array._recorder)
        awaited = None
        while awaited is None:
            producer, handle = array._recorder, array._handle
            if producer.is_unsent(handle):
                self._flush(producer, deadline_s)
            awaited = self._post_if_named(array, handle, receiver)
        return awaited

    def _flush(self, producer: Recorder, deadline_s: float | None) -> None:
        """Sends the op that makes the value. Does not wake the I/O thread, so that the fetch joins the op's frame.

        If the op came in an earlier frame than the fetch, the server would order the op without the read. Work of other
        sessions might then run before the read.
        """
        scope, trigger = CutScope.EVERYTHING, Trigger.DEMAND
        self._sender.flush(producer, scope, trigger, may_wait=True, wakes=False, deadline_s=deadline_s)

    def _post_if_named(self, array: Recorded, handle: int, receiver: FutureValue | BlockedReader) -> _Awaited | None:
        """Posts the fetch. Returns None if `x[i] = v` has given `array` a new handle since `handle` was read.

        The server may then already know that `handle` is dead.
        """
        state = self._state
        with state.lock:
            state.check_open()
            if array._handle != handle:
                return None
            self._last_fetch += 1
            awaited = _Awaited(self._last_fetch, receiver, array._spec.spec)
            self._awaited[self._last_fetch] = awaited
            state.stream.post(Outgoing(Fetch(self._last_fetch, handle)))
        if state.profile is not None:
            state.profile.on_fetched(awaited.fetch, handle)
        return awaited

    def _abandon(self, fetch: int) -> bool:
        """Forgets a fetch. Returns False if the fetch has been answered."""
        return self._give_up(fetch) is not None

    # ---- whatever thread receives ----

    @property
    def are_awaited(self) -> bool:
        return bool(self._awaited)

    def on_result(self, result: wire.Result) -> None:
        """Takes the server's answer: the value, a failure, or the size of a value to be downloaded.

        If a signal handler has raised meanwhile, the same result may be taken again.
        """
        if self._state.profile is not None:
            self._state.profile.on_answered(result.fetch)
        if result.WhichOneof("answer") == "beside_bytes":
            self._download(result)
            return
        with self._state.lock:
            awaited = self._awaited.get(result.fetch)
        if awaited is None:
            return
        if isinstance(awaited.receiver, BlockedReader):
            self._answer(awaited, result)
            self._take(result.fetch)
        else:
            self._state.transport.call(partial(self._answer_future, result))  # the thread of its callbacks

    # ---- the I/O thread ----

    def _answer_future(self, result: wire.Result) -> None:
        awaited = self._take(result.fetch)
        if awaited is not None:
            self._answer(awaited, result)

    def on_download(self, fetch: int, raw: bytearray | memoryview) -> None:
        """Takes the bytes of a downloaded value, and tells the server, which keeps them until then."""
        awaited = self._give_up(fetch)
        if awaited is not None:
            _fulfil(awaited, raw)

    def on_download_failed(self, fetch: int, reason: Exception) -> None:
        """Fails the fetch whose download has failed, and tells the server to drop the value."""
        awaited = self._give_up(fetch)
        if awaited is not None:
            awaited.receiver.set_exception(reason)

    # ---- any thread ----

    def end(self, error: FusewireError) -> None:
        """Answers all open fetches with `error`, because no more answers will come."""
        with self._state.lock:
            awaited, self._awaited = self._awaited, {}
        for each in awaited.values():
            each.receiver.set_exception(type(error)(str(error)))

    def _answer(self, awaited: _Awaited, result: wire.Result) -> None:
        if result.WhichOneof("answer") == "failure":
            awaited.receiver.set_exception(self._exception(result.failure))
        else:
            _fulfil(awaited, bytearray(result.inline))

    def _download(self, result: wire.Result) -> None:
        with self._state.lock:
            is_awaited = result.fetch in self._awaited
        if is_awaited:
            self._state.transport.download(self._state.stream.session_id, result.fetch, result.beside_bytes)

    def _give_up(self, fetch: int) -> _Awaited | None:
        """Takes a fetch out of the table and tells the server that no bytes are wanted any more.

        Returns None if the fetch has been answered.
        """
        awaited = self._take(fetch)
        if awaited is not None:
            self._state.post(Outgoing(Abandon(fetch)))
            self._state.transport.wake()
        return awaited

    def _take(self, fetch: int) -> _Awaited | None:
        with self._state.lock:
            return self._awaited.pop(fetch, None)

    def _exception(self, failure: wire.Failure) -> FusewireError:
        """Returns the exception for a failure. It names the line that recorded the op, if an op failed."""
        if not failure.base:
            return exception_of(failure.code, failure.text)
        source_line = self._thread_recorders.source_line(failure.base + failure.op_index)
        return exception_of(failure.code, f"{failure.text} ({source_line or _LINE_NOT_KNOWN})")


def _fulfil(awaited: _Awaited, raw: bytearray | memoryview) -> None:
    try:
        dtype = dtypes.to_numpy(awaited.spec.dtype)
    except DtypeError as error:
        awaited.receiver.set_exception(error)
        return
    awaited.receiver.set_result(np.frombuffer(raw, dtype).reshape(awaited.spec.shape))
