"""Inspection of several engines: asks them, and joins what they answer. The inspection thread calls it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from fusewire_server.config.version import installed_version
from fusewire_server.engines.engines import Engines
from fusewire_server.engines.joined_snapshots import joined
from fusewire_server.engines.joined_views import joined_pools, joined_queues, joined_slow_segments
from fusewire_server.host.process_usage import process_usage
from fusewire_server.inspect.control import Arrays
from fusewire_server.inspect.loop_thread import LoopBusy
from fusewire_server.inspect.requests.refusals import INSPECTION_DOOR
from fusewire_server.inspect.snapshots.snapshot import (
    BackendView,
    HostMemory,
    Process,
    Snapshot,
    Stats,
    Totals,
)
from fusewire_server.inspect.views import PoolView, QueueView, SlowSegmentView
from fusewire_server.programs.counters import TOKEN_DOOR

_T = TypeVar("_T")

_SNAPSHOT_WITHIN_S = 0.5
_ANSWER_WITHIN_S = 1.0


class InFront:
    """What the process in front of the engines counts and uses itself. `inspection_refusals` are those by case."""

    def __init__(self, inspection_refusals: Mapping[str, int]) -> None:
        self._inspection_refusals = inspection_refusals
        self._refused_calls = 0
        self._instance = secrets.token_hex(16)
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")

    def count_refusals(self, calls: int) -> None:
        """Counts calls without a valid token."""
        self._refused_calls += calls

    def snapshot(self) -> Snapshot:
        """Returns the snapshot of a server without engines."""
        usage = process_usage()
        inspection = {case: count for case, count in self._inspection_refusals.items() if count}
        tokens = {"unauthenticated": self._refused_calls} if self._refused_calls else {}
        return Snapshot(
            Stats(
                instance=self._instance,
                version=installed_version(),
                started_at=self._started_at,
                backend=BackendView("", "", 0, "no engine runs", has_compiler=False),
                is_ready=False,
                totals=Totals(refusals={TOKEN_DOOR: tokens, INSPECTION_DOOR: inspection}),
                host_memory=HostMemory(unaccounted=usage.resident_bytes or 0),
                process=Process(*usage, tasks=len(asyncio.all_tasks())),
            ),
            taken_at_ns=time.monotonic_ns(),
        )


class EnginesSnapshots:
    """Takes a snapshot of all engines for each request."""

    def __init__(self, engines: Engines, front: InFront, loop: asyncio.AbstractEventLoop) -> None:
        self._engines = engines
        self._front = front
        self._loop = loop
        self._newest: Snapshot
        self._asked: asyncio.Future[Snapshot] | None = None  # requests that come meanwhile share the answer

    def newest(self) -> Snapshot:
        return self._newest

    async def fresh(self) -> Snapshot:
        if self._asked is None or self._asked.done():
            self._asked = _begin(self.take(), self._loop)
        return await _within(asyncio.shield(self._asked), _SNAPSHOT_WITHIN_S)

    async def take(self) -> Snapshot:
        """Takes the snapshot. Runs on the loop thread. Raises LoopBusy."""
        engines = self._engines.all
        devices = await asyncio.gather(*[each.snapshot() for each in engines])
        left = [each.left for each in engines if each.left is not None]
        self._newest = joined(self._front.snapshot(), devices, left)
        return self._newest


class EnginesControl:
    """The control of several engines. `drain` ends the server; it runs on the loop thread."""

    def __init__(self, engines: Engines, loop: asyncio.AbstractEventLoop, drain: Callable[[], None]) -> None:
        self._engines = engines
        self._loop = loop
        self._drain = drain

    async def hold(self) -> None:
        await self._ask("hold")

    async def release(self) -> None:
        await self._ask("release")

    def drain(self) -> None:
        self._loop.call_soon_threadsafe(self._drain)

    async def end_session(self, session: str) -> bool:
        return any(await self._ask("end_session", session=session))

    def log_level(self) -> str:
        return logging.getLevelName(logging.getLogger().level).lower()

    async def set_log_level(self, level: str) -> None:
        logging.getLogger().setLevel(level.upper())
        await self._ask("set_log_level", level=level)

    async def arrays(self, session: str, *, after: int, limit: int) -> Arrays | None:
        found: list[Arrays | None] = await self._ask("arrays", session=session, after=after, limit=limit)
        return next((each for each in found if each is not None), None)

    async def pool(self) -> PoolView:
        return joined_pools(await self._ask("pool"))

    async def queue(self) -> QueueView:
        return joined_queues(await self._ask("queue"))

    async def slow_segments(self, limit: int) -> tuple[SlowSegmentView, ...]:
        return joined_slow_segments(await self._ask("slow_segments", limit=limit), limit)

    async def _ask(self, name: str, **arguments: Any) -> list[Any]:
        """Returns the answer of each engine. Raises LoopBusy."""
        return await _within(_begin(self._engines.ask(name, **arguments), self._loop), _ANSWER_WITHIN_S)


def _begin(question: Coroutine[Any, Any, _T], loop: asyncio.AbstractEventLoop) -> asyncio.Future[_T]:
    """Runs a coroutine on the loop thread. Returns a future for the running event loop."""
    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(question, loop))


async def _within(answer: asyncio.Future[_T], within_s: float) -> _T:
    try:
        return await asyncio.wait_for(answer, within_s)
    except TimeoutError:
        raise LoopBusy(f"an engine did not answer within {within_s} s, because it is busy") from None
