"""Routes of the device: its memory, its queue, its slow submissions, and its gate."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query

from fusewire_server.inspect.described import DescribedModel
from fusewire_server.inspect.live_views import PoolView, QueueView, SlowLog
from fusewire_server.inspect.routes import examples
from fusewire_server.inspect.routes.description import shows
from fusewire_server.inspect.routes.sources import Served
from fusewire_server.programs.slow_log import MOST_KEPT

_SlowLimit = Annotated[int, Query(ge=1, le=MOST_KEPT, description="most entries of the answer")]


class Gate(DescribedModel):
    """Tells whether the device is held after the request."""

    is_held: bool
    """Whether the device takes no new submissions."""


def add_routes(app: FastAPI) -> None:
    app.get("/v1/pool", summary="Memory of the device", responses=shows(examples.POOL))(pool)
    app.get("/v1/queue", summary="Rows that wait for the device", responses=shows(examples.QUEUE))(queue)
    app.get("/v1/slowlog", summary="Slow submissions", responses=shows(examples.SLOW_LOG))(slow_log)
    app.post("/v1/device/hold", summary="Hold the device", responses=shows(Gate(is_held=True)))(hold)
    app.post("/v1/device/release", summary="Release the device", responses=shows(Gate(is_held=False)))(release)


async def pool(sources: Served) -> PoolView:
    """Tells the bytes of values, and the blocks of the device's memory pool by size."""
    return sources.questions.pool()


async def queue(sources: Served) -> QueueView:
    """Tells how many rows wait, by tenant in the order of their turns, and by program."""
    return await sources.questions.queue()


async def slow_log(sources: Served, limit: _SlowLimit = MOST_KEPT) -> SlowLog:
    """Tells the last submissions that took the device at least 10 ms, and where their time went."""
    return await sources.questions.slow_log(limit)


async def hold(sources: Served) -> Gate:
    """Stops new submissions until the device is released. Sessions go on filling their credit."""
    sources.control.hold()
    return Gate(is_held=True)


async def release(sources: Served) -> Gate:
    """Lets the device take submissions again."""
    sources.control.release()
    return Gate(is_held=False)
