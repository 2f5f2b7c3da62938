"""The routes of the device: memory, queue, slow segments, hold and release."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter

from fusewire_server.figures import read
from fusewire_server.inspect.control import Control
from fusewire_server.inspect.pages import Newest
from fusewire_server.inspect.requests.problems import responses
from fusewire_server.inspect.routes.fresh import Fresh
from fusewire_server.inspect.views import Failures, Gate, PoolView, QueueView, SlowLogView
from fusewire_server.programs.recent import MOST_RECENT, SLOW_NS


def device_routes(control: Control) -> APIRouter:
    """Returns the routes."""
    router = APIRouter(tags=["device"], responses=responses())

    @router.get("/v1/pool")
    async def pool(snapshot: Fresh) -> PoolView:
        """The memory of the device: values, their peak, and the pool and its blocks."""
        return replace(read(PoolView, snapshot), blocks=(await control.details()).blocks)

    @router.get("/v1/queue")
    async def queue(snapshot: Fresh) -> QueueView:
        """The segments that wait for the device, by tenant and by program, and the kernels that rows wait for."""
        return read(QueueView, snapshot)

    @router.get("/v1/slowlog")
    async def slow_log(limit: Newest = MOST_RECENT) -> SlowLogView:
        """The newest segments that took at least 10 ms."""
        return SlowLogView(threshold_s=SLOW_NS / 1e9, entries=(await control.details()).slow_segments[:limit])

    @router.get("/v1/failures")
    async def failures(limit: Newest = MOST_RECENT) -> Failures:
        """The newest failures of all sessions, with the texts that their clients get."""
        return Failures(failures=(await control.details()).failures[:limit])

    @router.post("/v1/device/hold")
    async def hold() -> Gate:
        """Stops new submissions until the device is released. Sessions go on filling their credit. Needs `admin`."""
        await control.hold()
        return Gate(is_held=True)

    @router.post("/v1/device/release")
    async def release() -> Gate:
        """Lets the device take submissions again. Needs the scope `admin`."""
        await control.release()
        return Gate(is_held=False)

    return router
