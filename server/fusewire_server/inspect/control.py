"""What the routes ask of the engine beside snapshots, and the operations that they order."""

from __future__ import annotations

import logging
from collections.abc import Callable
from heapq import nsmallest
from typing import NamedTuple, Protocol

from fusewire_protos.errors import CaseError
from fusewire_server.engine.engine import Engine
from fusewire_server.inspect import live_views
from fusewire_server.inspect.loop_thread import LoopThread
from fusewire_server.inspect.views import ArrayView, PoolView, QueueView, SlowSegmentView


class Arrays(NamedTuple):
    """A page of arrays. `following` is the handle after which the next page begins, or None."""

    arrays: tuple[ArrayView, ...]
    following: int | None


class Control(Protocol):
    """Questions to the server and operations on it. Questions raise LoopBusy if the server is too busy to answer."""

    async def hold(self) -> None:
        """Stops new submissions. Submissions that have begun go on, and sessions stay open."""

    async def release(self) -> None:
        """Lets the device take submissions again."""

    def drain(self) -> None:
        """Lets sessions finish their work, and ends the server. The second call ends it at once."""

    async def end_session(self, session: str) -> bool:
        """Ends a session, given its shown id. Returns False if there is none."""

    def log_level(self) -> str:
        """Returns the level of the log: debug, info, warning or error."""

    async def set_log_level(self, level: str) -> None:
        """Sets the level of the log until the server ends."""

    async def arrays(self, session: str, *, after: int, limit: int) -> Arrays | None:
        """Returns the arrays of a session with handles above `after`; None if there is no such session."""

    async def pool(self) -> PoolView:
        """Returns the memory of the device."""

    async def queue(self) -> QueueView:
        """Returns the rows that wait."""

    async def slow_segments(self, limit: int) -> tuple[SlowSegmentView, ...]:
        """Returns the newest slow segments."""


class EngineControl:
    """The control of an engine that a loop thread owns. `drain` ends the process; it runs on the loop thread."""

    def __init__(self, engine: Engine, loop_thread: LoopThread, drain: Callable[[], None]) -> None:
        self._engine = engine
        self._loop_thread = loop_thread
        self._drain = drain

    async def hold(self) -> None:
        self._loop_thread.tell(self._engine.hold)

    async def release(self) -> None:
        self._loop_thread.tell(self._engine.unhold)

    def drain(self) -> None:
        self._loop_thread.tell(self._drain)

    async def end_session(self, session: str) -> bool:
        return await self._loop_thread.ask(lambda: self._end_session(session))

    def log_level(self) -> str:
        return logging.getLevelName(logging.getLogger().level).lower()

    async def set_log_level(self, level: str) -> None:
        logging.getLogger().setLevel(level.upper())

    async def arrays(self, session: str, *, after: int, limit: int) -> Arrays | None:
        handles = await self._loop_thread.ask(lambda: live_views.handles_of(self._engine, session))
        if handles is None:
            return None
        found = nsmallest(limit + 1, (handle for handle in handles if handle > after))
        page = found[:limit]
        arrays = await self._loop_thread.ask(lambda: live_views.arrays_of(self._engine, session, page))
        return Arrays(arrays, page[-1] if len(found) > limit else None)

    async def pool(self) -> PoolView:
        return live_views.pool_of(self._engine)

    async def queue(self) -> QueueView:
        return await self._loop_thread.ask(lambda: live_views.queue_of(self._engine))

    async def slow_segments(self, limit: int) -> tuple[SlowSegmentView, ...]:
        return await self._loop_thread.ask(lambda: live_views.slow_segments_of(self._engine, limit))

    def _end_session(self, shown: str) -> bool:
        session = live_views.session_of(self._engine, shown)
        if session is None:
            return False
        reason = CaseError("ended_by_operator", "an operator of the server ended this session")
        self._engine.dismiss([session], reason)
        return True
