"""Ends a session's upload and download calls with the session. Owned by the loop thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fusewire_protos.errors import CaseError
from fusewire_server.sessions.session import Session

MOST_CALLS = 512  # of a session at once: twice what a connection carries, as an old one may linger beside its successor


class BulkCalls:
    """The tasks that serve such calls, by session."""

    def __init__(self) -> None:
        self._by_session: dict[bytes, set[asyncio.Task[Any]]] = {}

    @contextmanager
    def carrying(self, session: Session) -> Iterator[None]:
        """While the body runs, the task that runs it is one of the session's. Raises CaseError if it has too many."""
        task = asyncio.current_task()
        assert task is not None, "calls are served by tasks"
        if self.count(session) >= MOST_CALLS:
            raise CaseError("too_many_calls", f"{MOST_CALLS} calls of this session are under way; it may have no more")
        tasks = self._by_session.setdefault(session.session_id, set())
        tasks.add(task)
        try:
            yield
        finally:
            tasks.discard(task)
            if not tasks:
                self._by_session.pop(session.session_id, None)

    def count(self, session: Session) -> int:
        """How many of the session's calls are under way."""
        return len(self._by_session.get(session.session_id, ()))

    def end(self, session: Session) -> None:
        """The session has ended: its calls are cancelled."""
        for task in self._by_session.pop(session.session_id, ()):
            task.cancel()
