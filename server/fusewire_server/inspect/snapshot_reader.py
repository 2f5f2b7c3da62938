"""Gets a new snapshot from the loop thread for each request, so that no answer is older than its request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from fusewire_server.inspect.snapshot import Snapshot

_DEADLINE_S = 0.1


class StaleSnapshot(Exception):
    """Raised if the loop thread takes no snapshot in time, because it is busy."""


class SnapshotReader:
    """Asks the loop thread for snapshots.

    The inspection thread calls `fresh`. `publish` runs on the loop thread, and `call_on_loop` passes a function to that
    thread. `newest` returns the last published snapshot.
    """

    def __init__(
        self,
        publish: Callable[[], Snapshot],
        newest: Callable[[], Snapshot],
        call_on_loop: Callable[[Callable[[], None]], object],
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        self._publish = publish
        self.newest = newest
        self._call_on_loop = call_on_loop
        self._deadline_s = deadline_s
        self._asked: asyncio.Future[Snapshot] | None = None  # requests that come meanwhile share the answer

    async def fresh(self) -> Snapshot:
        """Returns a snapshot that is taken now. Raises StaleSnapshot if that takes longer than 100 ms."""
        if self._asked is None:
            self._asked = asyncio.get_running_loop().create_future()
            self._ask(self._asked)
        try:
            return await asyncio.wait_for(asyncio.shield(self._asked), self._deadline_s)
        except TimeoutError:
            raise StaleSnapshot(f"the server did not answer within {self._deadline_s} s, because it is busy") from None

    def _ask(self, asked: asyncio.Future[Snapshot]) -> None:
        inspection = asyncio.get_running_loop()

        def publish() -> None:
            snapshot = self._publish()
            with suppress(RuntimeError):  # inspection has ended meanwhile
                inspection.call_soon_threadsafe(self._answer, asked, snapshot)

        self._call_on_loop(publish)

    def _answer(self, asked: asyncio.Future[Snapshot], snapshot: Snapshot) -> None:
        self._asked = None
        asked.set_result(snapshot)
