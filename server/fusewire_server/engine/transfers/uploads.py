"""Joins the two halves of an upload: the entry that declares it, and the call that brings its bytes.

A declared upload fails if its call was refused, or if no call comes in time. A call may break off, because its
connection broke: then the next call brings the bytes. That call may come first, because the client may notice first
that the connection broke; so calls wait in line. While the session has no stream, no upload fails for want of a call.
The engine thread owns this state.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, Protocol

from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.session import Session, SessionState, Value, ValueState
from fusewire_server.sessions.tables.salted_table import SaltedTable
from fusewire_server.sessions.values import value_of

_SETTINGS = "the larger of limits.upload_stall_s and limits.resume_grace_s"
MOST_REFUSED = 512  # the most refused calls of a session that are remembered until their uploads are declared


class Fail(Protocol):
    """Fails a declared upload. `case` is a name from the error table."""

    def __call__(self, session: Session, value: Value, text: str, *, case: str) -> None: ...


_Call = asyncio.Future[Value | None]


class _Declared(NamedTuple):
    """An upload that waits for its call, the timer that ends the wait, and the failure if it does."""

    value: Value
    failure: Failure
    ends: asyncio.TimerHandle


@dataclass(frozen=True)
class _Uploads:
    """The uploads of one session that wait for a call, the calls that wait for an upload, and refusals; by handle."""

    declared: SaltedTable[_Declared] = field(default_factory=SaltedTable)
    called: SaltedTable[list[_Call]] = field(default_factory=SaltedTable)  # in order
    refused: SaltedTable[Failure] = field(default_factory=SaltedTable)


class Uploads:
    """Joins the halves of uploads. `fail` is called for a declared upload that no call brings, or one that is refused.

    `wait_s` may be replaced, for uploads that are declared later.
    """

    def __init__(self, wait_s: float, fail: Fail) -> None:
        self.wait_s = wait_s
        self._fail = fail
        self._by_session: dict[bytes, _Uploads] = {}

    @property
    def sessions(self) -> int:
        """The number of sessions that have had an upload and have not ended."""
        return len(self._by_session)

    def declare(self, session: Session, value: Value) -> None:
        """Notes that the stream has declared an upload. If the upload's call has come, the call gets the value."""
        refusal = self._of(session).refused.pop(value.handle, None)
        if refusal is None:
            self.wait_for_call(session, value, f"no call brought it within {self.wait_s} s: {_SETTINGS}")
        else:
            self._wait(session, value, refusal, 0)

    def wait_for_call(self, session: Session, value: Value, text: str) -> None:
        """Gives an upload whose bytes have not come to the call that waits, or lets it wait for one.

        If none comes in time, the upload fails with `text`.
        """
        uploads = self._of(session)
        calls = [each for each in uploads.called.pop(value.handle, ()) if not each.done()]
        if not calls:
            self._wait(session, value, Failure(BY_NAME["upload_failed"], text, 0, 0), self.wait_s)
            return
        first, *others = calls
        first.set_result(value)
        if others:
            uploads.called[value.handle] = others

    def _wait(self, session: Session, value: Value, failure: Failure, delay_s: float) -> None:
        ends = asyncio.get_running_loop().call_later(delay_s, self._fail_declared, session, value, failure)
        self._of(session).declared[value.handle] = _Declared(value, failure, ends)

    def resume(self, session: Session) -> None:
        """Gives the calls of a session that has a stream again their whole time."""
        uploads = self._by_session.get(session.session_id, _Uploads())
        for declared in [*uploads.declared.values()]:
            declared.ends.cancel()
            self._wait(session, declared.value, declared.failure, self.wait_s)

    def turn_away(self, session: Session, handle: int) -> None:
        """Gives no value to the calls that wait: its declaration was refused, or an earlier call has settled it."""
        uploads = self._by_session.get(session.session_id, _Uploads())
        for call in uploads.called.pop(handle, ()):
            if not call.done():
                call.set_result(None)

    def claim(self, session: Session, handle: int) -> asyncio.Future[Value | None]:
        """Returns a future of the value that an upload call will fill.

        The future is done when the stream declares the value. Its result is None if this call may not fill the value.
        """
        uploads = self._of(session)
        call: _Call = asyncio.get_running_loop().create_future()
        uploads.refused.pop(handle, None)
        declared = uploads.declared.pop(handle, None)
        value = value_of(session, handle)
        if declared is not None:
            declared.ends.cancel()
            call.set_result(declared.value)
        elif handle not in session.failed and (value is None or value.state is ValueState.AWAITED):
            uploads.called.setdefault(handle, []).append(call)
        else:
            call.set_result(None)
        return call

    def refuse(self, session: Session, handle: int, error: CaseError) -> None:
        """Fails the upload of a refused call, now or when the stream declares it."""
        uploads = self._of(session)
        declared = uploads.declared.get(handle)
        if declared is not None:
            declared.ends.cancel()
            self._fail_declared(session, declared.value, Failure.of(error))
        elif not session.knows(handle) and handle not in uploads.called and len(uploads.refused) < MOST_REFUSED:
            uploads.refused[handle] = Failure.of(error)

    def give_up(self, session: Session, handle: int, call: asyncio.Future[Value | None]) -> Value | None:
        """Ends a call's wait for its value.

        Returns the value if it was declared in this same turn of the event loop: then no other call will fill it.
        """
        uploads = self._by_session.get(session.session_id, _Uploads())
        calls = [each for each in uploads.called.pop(handle, ()) if each is not call]
        if calls:
            uploads.called[handle] = calls
        return call.result() if call.done() and not call.cancelled() else None

    def drop(self, session: Session) -> None:
        """Drops the incomplete uploads of a session that has ended."""
        uploads = self._by_session.pop(session.session_id, _Uploads())
        for declared in uploads.declared.values():
            declared.ends.cancel()
        for call in chain.from_iterable(uploads.called.values()):
            if not call.done():
                call.set_result(None)

    def _of(self, session: Session) -> _Uploads:
        return self._by_session.setdefault(session.session_id, _Uploads())

    def _fail_declared(self, session: Session, value: Value, failure: Failure) -> None:
        if session.state is SessionState.DETACHED:
            return  # until the session is resumed, or ends
        del self._by_session[session.session_id].declared[value.handle]
        self._fail(session, value, failure.text, case=failure.case.name)
