"""Decides when a session may end while the server drains. Pure."""

from __future__ import annotations

from fusewire_server.sessions.session import Session, SessionState

# A client that waits for an answer and then goes on sends its next frame within this time.
QUIET_NS = 250_000_000


def may_end(session: Session, now_ns: int) -> bool:
    """Returns whether everything that the client has begun is finished, and the client has been quiet for a while.

    A client without a connection may come back for the answers that it has not taken.
    """
    return _is_finished(session) and now_ns - session.heard_at_ns >= QUIET_NS


def _is_finished(session: Session) -> bool:
    answers = session.answers
    has_work = session.admitted != session.completed or session.uploading_bytes > 0
    is_left_behind = session.state is SessionState.DETACHED and bool(answers.unacknowledged)
    return not (has_work or session.fetches or answers.are_owed or answers.beside or is_left_behind)
