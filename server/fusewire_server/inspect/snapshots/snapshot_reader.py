"""Gets a new snapshot for each request, so that no answer is older than its request. All who wait share one.

Snapshots begin at most once a tick, so that the engine thread spends little time on them, however many watch. While
nobody watches there are none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fusewire_server.inspect.engine_thread import wait_for
from fusewire_server.inspect.snapshots.snapshot import Snapshot

TICK_S = 0.02


class SnapshotReader:
    """Asks for snapshots. Runs on the inspection thread.

    `begin` has one taken. `newest` returns the last one, however old it is. A request waits at most for the tick and
    for `deadline_s`.
    """

    def __init__(
        self, begin: Callable[[], Awaitable[Snapshot]], newest: Callable[[], Snapshot], deadline_s: float
    ) -> None:
        self.newest = newest
        self._begin = begin
        self._deadline_s = deadline_s
        self._begun_s = float("-inf")
        self._asked: asyncio.Task[Snapshot] | None = None

    async def fresh(self) -> Snapshot:
        """Returns a snapshot that is taken now. Raises EngineBusy if that takes too long."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.create_task(self._take())
        return await wait_for(asyncio.shield(self._asked), self._deadline_s + TICK_S)

    async def _take(self) -> Snapshot:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._begun_s + TICK_S - loop.time())
        self._begun_s = loop.time()
        return await self._begin()
