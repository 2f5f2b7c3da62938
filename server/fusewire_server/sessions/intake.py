"""Applies the items of a frame to its session: changes tables, queues rows and begins fetches. Pure.

Items take effect in order. An item may make a row; the module `rows` decides when the row is queued. A CaseError with a
protocol case ends the session. A CaseError with an operation case fails values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from fusewire_protos import frames
from fusewire_protos.errors import CaseError, Consequence
from fusewire_protos.frames import NewProgram
from fusewire_server.config.config import Limits
from fusewire_server.programs.claim import Claim, Rejected, claim_of_program, read_program
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramEntry, ProgramTable
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.entries.explain import take_explain
from fusewire_server.sessions.entries.fetch import take_abandon, take_fetch
from fusewire_server.sessions.entries.frame import Arrival, Frame, Item, Unfinished, UnreadProgram, go_on
from fusewire_server.sessions.entries.profile import take_profile
from fusewire_server.sessions.entries.segment import take_segment
from fusewire_server.sessions.entries.upload import take_upload
from fusewire_server.sessions.host_bytes import FREED_BYTES, check_host_room, may_hold
from fusewire_server.sessions.rows import cancel_rows
from fusewire_server.sessions.session import Session, Value
from fusewire_server.sessions.tables.failed_handles import FailedHandles
from fusewire_server.sessions.tables.salted_table import SaltedTable
from fusewire_server.sessions.values import free_handles

MOST_FREED_AT_ONCE = 256  # the most handles that a Free entry frees in one call


class Applied(NamedTuple):
    """The result of applying items. `left` is to be applied before the items that follow; `error` ends the session."""

    effects: Effects
    left: Item | None = None
    error: CaseError | None = None


class Intake:
    """Applies frames to sessions. The engine thread owns this object."""

    def __init__(self, limits: Limits, programs: ProgramTable) -> None:
        self._limits = limits
        self._programs = programs

    def take(self, session: Session, items: Iterable[Item], arrival: Arrival) -> Applied:
        """Applies items in order, until one is applied only in part (the rest is `left`) or raises a protocol case."""
        effects = Effects()
        frame = Frame(session, arrival, self._limits, self._programs, effects)
        try:
            for item in items:
                left = _TAKE[type(item)](frame, item)
                if left is not None:
                    return Applied(effects, left)
        except CaseError as error:
            return Applied(effects, error=error)
        return Applied(effects)

    def close(self, session: Session) -> SaltedTable[Value]:
        """Drops the rows, fetches and programs of an ended session.

        Returns the values that the session held, by handle, and the results of its loops of which some iterations have
        run: these have memory even if the client has freed them, and has given their handles to other values. The
        caller lets these values die.
        """
        values, session.values, session.large = session.values, SaltedTable(), SaltedTable()
        begun = [row for row in (*session.queue, *session.cancelled) if row.has_begun]
        for value in [value for row in begun for value in row.outputs]:
            if values.get(value.handle) is not value:
                values[session.next_hidden_handle()] = value
        session.failed = FailedHandles()
        session.queue.clear()
        session.held_back.clear()
        session.cancelled.clear()
        session.forget_answers()
        for entry in session.programs.values():
            _let_go(session, self._programs, entry)
        session.programs.clear()
        session.live_bytes = 0
        return values


def _take_program(frame: Frame, new: NewProgram) -> UnreadProgram | None:
    """Gives a new program its number. A bad program fails the segments that use the program, not the session.

    Returns what is left to read of its bytes, if they are not known.
    """
    session, programs, most = frame.session, frame.programs, frame.limits.programs
    if new.number in session.programs or new.number in session.rejected_programs:
        raise CaseError("undecodable_frame", f"program {new.number} is numbered twice")
    if len(session.programs) + len(session.rejected_programs) >= most:
        raise CaseError("undecodable_frame", f"more than limits.programs = {most} programs are numbered at once")
    entry = programs.find(new.raw, is_fragment=new.is_fragment)
    if entry is None:
        return _take_unread(frame, UnreadProgram(new, read_program(new.raw, programs.limits)))
    _hold(frame, new, entry)
    return None


def _take_unread(frame: Frame, unread: UnreadProgram) -> UnreadProgram | None:
    """Reads a part of a new program. Returns `unread` if more is to be read."""
    new = unread.new
    try:
        next(unread.reading)
    except StopIteration as end:
        if isinstance(end.value, Rejected):
            _reject(frame, new, *end.value)
        else:
            _hold(frame, new, frame.programs.add(new.raw, end.value, is_fragment=new.is_fragment))
        return None
    return unread


def _hold(frame: Frame, new: NewProgram, entry: ProgramEntry) -> None:
    session, programs = frame.session, frame.programs
    tenant_bytes = programs.quota.tenant_bytes_with(session.session_id, entry, entry.held_bytes)
    try:
        check_host_room(session, tenant_bytes - session.tenant_bytes.program_bytes)
        programs.hold(session.session_id, entry)
    except CaseError as error:
        _reject(frame, new, error, claim_of_program(entry.program))
    else:
        session.tenant_bytes.program_bytes = tenant_bytes
        session.programs[new.number] = entry


def _let_go(session: Session, programs: ProgramTable, entry: ProgramEntry) -> None:
    session.tenant_bytes.program_bytes = programs.let_go(session.session_id, entry)


def _reject(frame: Frame, new: NewProgram, error: CaseError, claim: Claim) -> None:
    if error.case.consequence is Consequence.PROTOCOL:
        raise error
    failure = Failure.of(error)
    frame.session.rejected_programs[new.number] = (failure, claim)
    frame.session.rejected_bytes += claim.size_bytes
    frame.effects.failures.append(failure)


def _take_free(frame: Frame, free: frames.Free) -> Item | None:
    handles = free.handles
    free_handles(frame.session, handles[:MOST_FREED_AT_ONCE], frame.effects.released)
    _forget_failures_beyond_limit(frame.session)
    return frames.Free(handles[MOST_FREED_AT_ONCE:]) if len(handles) > MOST_FREED_AT_ONCE else None


def _forget_failures_beyond_limit(session: Session) -> None:
    """Forgets which results have failed if there is no room to note which of their handles are freed."""
    if not may_hold(session, session.failed.freed * FREED_BYTES, 0):
        session.failed = FailedHandles()


def _take_cancel(frame: Frame, cancel: frames.Cancel) -> frames.Cancel | None:
    return None if cancel_rows(frame.session, frame.effects) else cancel


def _take_forget(frame: Frame, forget: frames.Forget) -> None:
    session = frame.session
    entry = session.programs.pop(forget.program, None)
    if entry is not None:
        _let_go(session, frame.programs, entry)
        return
    rejected = session.rejected_programs.pop(forget.program, None)
    if rejected is None:
        raise CaseError("unknown_program", f"program {forget.program} was never sent")
    session.rejected_bytes -= rejected[1].size_bytes


_TAKE: dict[type, Callable[[Frame, Any], Item | None]] = {
    NewProgram: _take_program,
    UnreadProgram: _take_unread,
    frames.Segment: take_segment,
    frames.Upload: take_upload,
    frames.Free: _take_free,
    frames.Fetch: take_fetch,
    frames.Abandon: take_abandon,
    frames.Cancel: _take_cancel,
    frames.Forget: _take_forget,
    frames.Explain: take_explain,
    frames.Profile: take_profile,
    Unfinished: go_on,
}
