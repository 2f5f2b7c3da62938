"""Joins the two halves of an upload: the entry that declares it, and the call that brings its bytes.

A declared upload fails if its call does not come in time, or if its call was refused. The loop thread owns this state.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.salted_table import SaltedTable
from fusewire_server.sessions.session import Session, Value

MOST_REFUSED = 512  # the most refused calls of a session that are remembered until their uploads are declared


class Fail(Protocol):
    """Fails a declared upload. `case` is a name from the error table."""

    def __call__(self, session: Session, value: Value, text: str, *, case: str) -> None: ...


class _Declared(NamedTuple):
    """An upload that waits for its call, and the timer that ends the wait."""

    value: Value
    ends: asyncio.TimerHandle


@dataclass(frozen=True)
class _Uploads:
    """The uploads of one session for which only one half has come, by handle."""

    declared: SaltedTable[_Declared] = field(default_factory=SaltedTable)
    called: SaltedTable[asyncio.Future[Value | None]] = field(default_factory=SaltedTable)
    refused: SaltedTable[Failure] = field(default_factory=SaltedTable)


class Uploads:
    """Joins the halves of uploads. `fail` is called for a declared upload if it stalls or if its call was refused.

    `stall_s` may be replaced, for uploads that are declared later.
    """

    def __init__(self, stall_s: float, fail: Fail) -> None:
        self.stall_s = stall_s
        self._fail = fail
        self._by_session: dict[bytes, _Uploads] = {}

    @property
    def sessions(self) -> int:
        """The number of sessions that have had an upload and have not ended."""
        return len(self._by_session)

    def declare(self, session: Session, value: Value) -> None:
        """Notes that the stream has declared an upload. If the upload's call has come, the call gets the value."""
        uploads = self._of(session)
        call = uploads.called.pop(value.handle, None)
        if call is not None and not call.done():
            call.set_result(value)
            return
        refusal = uploads.refused.pop(value.handle, None)
        stalled = Failure(BY_NAME["upload_failed"], f"nothing came for limits.upload_stall_s = {self.stall_s}", 0, 0)
        delay_s, failure = (self.stall_s, stalled) if refusal is None else (0, refusal)
        ends = asyncio.get_running_loop().call_later(delay_s, self._fail_declared, session, value, failure)
        uploads.declared[value.handle] = _Declared(value, ends)

    def refuse_declaration(self, session: Session, handle: int) -> None:
        """Notes that the stream's declaration of an upload was refused. A call that has come gets no value."""
        uploads = self._by_session.get(session.session_id)
        call = None if uploads is None else uploads.called.pop(handle, None)
        if call is not None and not call.done():
            call.set_result(None)

    def claim(self, session: Session, handle: int) -> asyncio.Future[Value | None]:
        """Returns a future of the value that an upload call will fill.

        The future is done when the stream declares the value. Its result is None if this call may not fill the value.
        """
        uploads = self._of(session)
        call: asyncio.Future[Value | None] = asyncio.get_running_loop().create_future()
        uploads.refused.pop(handle, None)
        declared = uploads.declared.pop(handle, None)
        if declared is not None:
            declared.ends.cancel()
            call.set_result(declared.value)
        elif session.knows(handle) or handle in uploads.called:
            call.set_result(None)
        else:
            uploads.called[handle] = call
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
        """Ends a call's wait for the declaration of its value. A later call for the same handle may wait instead.

        Returns the value if it was declared in this same turn of the event loop: then no other call will fill it.
        """
        uploads = self._by_session.get(session.session_id)
        if uploads is not None and uploads.called.get(handle) is call:
            del uploads.called[handle]
        return call.result() if call.done() and not call.cancelled() else None

    def drop(self, session: Session) -> None:
        """Drops the incomplete uploads of a session that has ended."""
        uploads = self._by_session.pop(session.session_id, _Uploads())
        for declared in uploads.declared.values():
            declared.ends.cancel()
        for call in uploads.called.values():
            if not call.done():
                call.set_result(None)

    def _of(self, session: Session) -> _Uploads:
        return self._by_session.setdefault(session.session_id, _Uploads())

    def _fail_declared(self, session: Session, value: Value, failure: Failure) -> None:
        del self._by_session[session.session_id].declared[value.handle]
        self._fail(session, value, failure.text, case=failure.case.name)
