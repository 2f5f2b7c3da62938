"""Ends the upload and download calls of a session that ends or gets a new stream. The engine thread owns this."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fusewire_protos.errors import CaseError
from fusewire_server.sessions.session import Session

# The most calls that a session may have at once. The number is twice the number that one connection carries, because
# the session's old connection may still be open when the new one begins.
MOST_CALLS = 512


class BulkCalls:
    """The tasks that serve upload and download calls, by session."""

    def __init__(self) -> None:
        self._by_session: dict[bytes, set[asyncio.Task[Any]]] = {}

    @contextmanager
    def carrying(self, session: Session) -> Iterator[None]:
        """Counts the current task among the session's calls while the `with` body runs.

        Raises CaseError if the session has too many calls.
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
            if not tasks and self._by_session.get(session.session_id) is tasks:
                del self._by_session[session.session_id]

    def count(self, session: Session) -> int:
        """Returns the number of the session's calls that are running."""
        return len(self._by_session.get(session.session_id, ()))

    def end(self, session: Session) -> None:
        """Cancels the calls of a session that has ended, or those that belong to an older connection of its client."""
        for task in self._by_session.pop(session.session_id, ()):
            task.cancel()
