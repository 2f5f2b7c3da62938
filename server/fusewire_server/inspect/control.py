"""Asks the engine, or each engine of a server, what no snapshot holds, and orders what operators want."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from heapq import nsmallest
from typing import Any, Protocol

from fusewire_server.engine.launch_records import Records
from fusewire_server.figures import joined
from fusewire_server.inspect.engine_thread import begun, wait_for
from fusewire_server.inspect.live_views import set_log_level
from fusewire_server.inspect.snapshots.details import Details
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.snapshot_reader import SnapshotReader
from fusewire_server.inspect.views import Arrays

_ANSWER_WITHIN_S = 1.0


class AskEngines(Protocol):
    """Asks each engine one of the `ANSWERS`, and returns their answers. Raises EngineBusy if one is too busy."""

    def __call__(self, name: str, **arguments: Any) -> Awaitable[list[Any]]: ...


class Control:
    """Questions to the server and operations on it. All raise EngineBusy if the server is too busy to answer.

    `drain` lets sessions finish their work, and ends the server. The second call ends it at once.
    """

    def __init__(self, ask: AskEngines, drain: Callable[[], object]) -> None:
        self._ask = ask
        self.drain = drain

    async def hold(self) -> None:
        """Stops new submissions. Submissions that have begun go on, and sessions stay open."""
        await self._ask("hold")

    async def release(self) -> None:
        """Lets the device take submissions again."""
        await self._ask("release")

    async def end_session(self, session: str) -> bool:
        """Ends a session, given its shown id. Returns False if there is none."""
        return any(await self._ask("end_session", shown=session))

    def log_level(self) -> str:
        """Returns the level of the log: debug, info, warning or error."""
        return logging.getLevelName(logging.getLogger().level).lower()

    async def set_log_level(self, level: str) -> None:
        """Sets the level of the log until the server ends."""
        set_log_level(None, level)
        await self._ask("set_log_level", level=level)

    async def arrays(self, session: str, *, after: int, limit: int) -> Arrays | None:
        """Returns the arrays of a session with handles above `after`; None if there is no such session."""
        handles = _known(await self._ask("handles", shown=session))
        if handles is None:
            return None
        found = nsmallest(limit + 1, (handle for handle in handles if handle > after))
        page = found[:limit]
        arrays = await self._ask("arrays", shown=session, handles=page)
        return Arrays(arrays=next(filter(None, arrays), ()), next=str(page[-1]) if len(found) > limit else None)

    async def details(self) -> Details:
        """Returns the blocks of the devices' memory and what happened last, of all engines together."""
        engines: list[Details] = await self._ask("details")
        return joined(engines)

    async def launch_records(self, positions: Iterable[tuple[int, int, int]], most: int) -> list[Records]:
        """Returns the new records of the submissions of each engine, as `launch_records_of` does."""
        records: list[Records] = await self._ask("launch_records", positions=[*positions], most=most)
        return records


def inspection_on(
    loop: asyncio.AbstractEventLoop,
    answer: Callable[..., Coroutine[Any, Any, list[Any]]],
    take: Callable[[], Coroutine[Any, Any, Snapshot]],
    newest: Callable[[], Snapshot],
    end: Callable[[], object],
    *,
    snapshot_within_s: float,
) -> tuple[SnapshotReader, Control]:
    """Returns what the inspection thread asks of the thread that runs `loop` and calls these functions.

    `answer` answers as `AskEngines`, `take` takes a snapshot, and `end` ends the server in order.
    """

    async def ask(name: str, **arguments: Any) -> list[Any]:
        return await wait_for(begun(answer(name, **arguments), loop), _ANSWER_WITHIN_S)

    reader = SnapshotReader(lambda: begun(take(), loop), newest, snapshot_within_s)
    return reader, Control(ask, lambda: loop.call_soon_threadsafe(end))


def _known(answers: Iterable[Any]) -> Any:
    """Returns the answer of the engine that has one."""
    return next((answer for answer in answers if answer is not None), None)
