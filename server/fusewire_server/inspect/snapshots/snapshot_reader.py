"""Gets a new snapshot from the loop thread for each request, so that no answer is older than its request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fusewire_server.inspect.loop_thread import LoopThread
from fusewire_server.inspect.snapshots.snapshot import Snapshot

_DEADLINE_S = 0.1


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
        self._loop_thread = LoopThread(call_on_loop, deadline_s)
        self._asked: asyncio.Future[Snapshot] | None = None  # requests that come meanwhile share the answer

    async def fresh(self) -> Snapshot:
        """Returns a snapshot that is taken now. Raises LoopBusy if that takes longer than 100 ms."""
        if self._asked is None or self._asked.done():
            self._asked = self._loop_thread.begin(self._publish)
        return await self._loop_thread.wait_for(asyncio.shield(self._asked))
