"""When a session may end while the server drains."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fusewire_protos.credit import Amount
from fusewire_protos.errors import BY_NAME
from fusewire_protos.frames import INLINE_BYTES
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.draining import QUIET_NS, may_end
from fusewire_server.sessions.session import PendingFetch, Session, SessionEvent
from tests.server.tables import World

HEARD_NS = 1_000


def quiet_session() -> Session:
    session = World().session()
    session.heard_at_ns = HEARD_NS
    session.completed = session.admitted
    return session


def test_a_session_that_has_been_quiet_may_end() -> None:
    assert may_end(quiet_session(), HEARD_NS + QUIET_NS)


def test_a_session_that_was_heard_a_moment_ago_may_not() -> None:
    assert not may_end(quiet_session(), HEARD_NS + QUIET_NS - 1)


def _is_computing(session: Session) -> None:
    session.take_credit(Amount(1, 1, 1))


def _waits_for_a_fetch(session: Session) -> None:
    session.fetches[1] = PendingFetch(session, 1, next(iter(session.values.values())))


def _has_an_answer_to_send(session: Session) -> None:
    session.answer_failure(1, Failure(BY_NAME["server_fault"], "", 0, 0))


def _has_a_large_answer_to_fetch(session: Session) -> None:
    session.answer(1, memoryview(bytes(INLINE_BYTES + 1)))
    session.answers.unsent.clear()


def _is_uploading(session: Session) -> None:
    session.uploading_bytes = 1


def _has_lost_its_stream_before_it_took_an_answer(session: Session) -> None:
    _has_an_answer_to_send(session)
    session.answers.take(1)
    session.on(SessionEvent.DISCONNECT)


@pytest.mark.parametrize(
    "begin",
    [
        _is_computing,
        _is_uploading,
        _waits_for_a_fetch,
        _has_an_answer_to_send,
        _has_a_large_answer_to_fetch,
        _has_lost_its_stream_before_it_took_an_answer,
    ],
)
def test_a_session_with_unfinished_work_may_not(begin: Callable[[Session], None]) -> None:
    session = quiet_session()
    begin(session)
    assert not may_end(session, HEARD_NS + 100 * QUIET_NS)
