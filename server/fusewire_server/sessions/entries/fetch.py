"""Applies the entries that begin or abandon a fetch. Pure."""

from __future__ import annotations

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Abandon, Fetch
from fusewire_server.sessions.entries.frame import Frame
from fusewire_server.sessions.entries.segment import failure_of_unknown
from fusewire_server.sessions.host_bytes import FETCH_BYTES, may_hold
from fusewire_server.sessions.session import PendingFetch, Session, ValueState, failure_of
from fusewire_server.sessions.tables.salted_table import SaltedTable
from fusewire_server.sessions.values import end_reading, value_of

COUNTED_FETCHES = 256  # so many fetches are counted at once, because counting each would slow every read


def take_fetch(frame: Frame, fetch: Fetch) -> None:
    """Begins a fetch. If the value has failed or is unknown, answers at once.

    Otherwise the value is read once it is ready. Ignores a fetch that is already being answered. Raises CaseError if
    the session has too many fetches.
    """
    session, effects = frame.session, frame.effects
    if _is_repeated(session, fetch.fetch):
        return
    check_takeable(frame)
    value = value_of(session, fetch.handle)
    if value is None or not value.is_named:
        failure = session.failed.failure_of(fetch.handle)
        if failure is None:
            failure = failure_of_unknown(fetch.handle, 0)
            effects.failures.append(failure)
        session.answer_failure(fetch.fetch, failure)
        return
    if value.state is ValueState.FAILED:
        session.answer_failure(fetch.fetch, failure_of(value))
        return
    pending = PendingFetch(session, fetch.fetch, value, frame.arrival.now_ns)
    session.begin_waiting(frame.arrival.now_ns)
    session.fetches[fetch.fetch] = pending
    value.readers += 1
    if value.state is ValueState.READY:
        effects.reads.append(pending)
    else:
        if value.fetches is None:
            value.fetches = SaltedTable()
        value.fetches[fetch.fetch] = pending


def take_abandon(frame: Frame, abandon: Abandon) -> None:
    """Drops the fetch whose answer the client does not want any more."""
    session = frame.session
    pending = session.fetches.get(abandon.fetch)
    if pending is None:
        session.answers.forget_beside(abandon.fetch)
        return
    pending.is_abandoned = True
    for waiting in (pending.value.fetches, session.reads):
        if waiting and waiting.pop(abandon.fetch, None) is not None:
            del session.fetches[abandon.fetch]
            end_reading(pending, frame.effects.released)


def check_takeable(frame: Frame) -> None:
    """Raises CaseError if so many fetches of the session wait to be taken that there may be no further one."""
    session, limit = frame.session, frame.limits.handles
    if len(session.fetches) + len(session.answers.untaken) >= limit:
        raise CaseError("slow_reader", f"more than limits.handles = {limit} fetches wait to be taken")
    _check_host_room(session)


def _check_host_room(session: Session) -> None:
    """Raises CaseError if there is no host memory for many more fetches. Looks at each `COUNTED_FETCHES`th of them."""
    held = len(session.fetches) + len(session.answers.untaken)
    is_counted = held % COUNTED_FETCHES == COUNTED_FETCHES - 1
    if is_counted and not may_hold(session, held * FETCH_BYTES, COUNTED_FETCHES * FETCH_BYTES):
        limit = session.tenant_bytes.limit_bytes
        raise CaseError("slow_reader", f"{held} fetches wait to be taken; limits.tenant_host_bytes = {limit}")


def _is_repeated(session: Session, fetch: int) -> bool:
    """Returns whether a fetch was sent before and needs no new read.

    If the answer was acknowledged and its bytes still wait for a Download call, queues the answer again.
    """
    if fetch in session.fetches or fetch in session.answers.untaken:
        return True
    return session.answers.tell_again(fetch)
