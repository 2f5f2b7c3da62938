"""Ends a session's upload and download calls with the session. Owned by the loop thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fusewire_protos.errors import CaseError
from fusewire_server.sessions.session import Session

# The most calls of a session at once: twice what one connection carries, because an old connection may linger beside
# its successor.
MOST_CALLS = 512


class BulkCalls:
    """The tasks that serve upload and download calls, by session."""

    def __init__(self) -> None:
        self._by_session: dict[bytes, set[asyncio.Task[Any]]] = {}

    @contextmanager
    def carrying(self, session: Session) -> Iterator[None]:
        """Counts the current task among the session's calls while the body runs.

        Raises CaseError if there are too many.
        """
        task = asyncio.current_task()
        assert task is not None, "a task serves each call"
        if self.count(session) >= MOST_CALLS:
            raise CaseError("too_many_calls", f"{MOST_CALLS} calls of this session are running, the most it may have")
        tasks = self._by_session.setdefault(session.session_id, set())
        tasks.add(task)
        try:
            yield
        finally:
            tasks.discard(task)
            if not tasks:
                self._by_session.pop(session.session_id, None)

    def count(self, session: Session) -> int:
        """Returns the number of the session's calls that are running."""
        return len(self._by_session.get(session.session_id, ()))

    def end(self, session: Session) -> None:
        """Cancels the calls of a session that has ended."""
        for task in self._by_session.pop(session.session_id, ()):
            task.cancel()
