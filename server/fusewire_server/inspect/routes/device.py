"""The routes of the device: memory, queue, slow segments, hold and release."""

from __future__ import annotations

from fastapi import APIRouter

from fusewire_server.inspect.control import Control
from fusewire_server.inspect.pages import Newest
from fusewire_server.inspect.requests.problems import responses
from fusewire_server.inspect.views import Failures, Gate, PoolView, QueueView, SlowLogView
from fusewire_server.programs.counters import MOST_RECENT
from fusewire_server.programs.slow_log import MOST_KEPT, SLOW_NS


def device_routes(control: Control) -> APIRouter:
    """Returns the routes."""
    router = APIRouter(tags=["device"], responses=responses())

    @router.get("/v1/pool")
    async def pool() -> PoolView:
        """The memory of the device: values, their peak, the pool and its blocks."""
        return await control.pool()

    @router.get("/v1/queue")
    async def queue() -> QueueView:
        """The segments that wait for the device, by tenant and by program, and the kernels that rows wait for."""
        return await control.queue()

    @router.get("/v1/slowlog")
    async def slow_log(limit: Newest = MOST_KEPT) -> SlowLogView:
        """The newest segments that took at least 10 ms."""
        entries = await control.slow_segments(limit)
        return SlowLogView(threshold_s=SLOW_NS / 1e9, entries=entries)

    @router.get("/v1/failures")
    async def failures(limit: Newest = MOST_RECENT) -> Failures:
        """The newest failures of all sessions, with the texts that their clients get."""
        return Failures(failures=await control.failures(limit))

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
