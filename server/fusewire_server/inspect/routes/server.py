"""The routes of the server as a whole: statistics, metrics, settings, log, drain."""

from __future__ import annotations

import time
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from fusewire_server.inspect.control import Control
from fusewire_server.inspect.metrics import CONTENT_TYPE, exposition
from fusewire_server.inspect.pages import NOT_MODIFIED, with_etag
from fusewire_server.inspect.requests.json_body import json_body, takes
from fusewire_server.inspect.requests.problems import responses, text_example
from fusewire_server.inspect.routes.fresh import Fresh, fresh_snapshot
from fusewire_server.inspect.snapshots.stats import Stats
from fusewire_server.inspect.views import Drain, LogLevel, Settings, SettingView


def server_routes(control: Control, settings: Mapping[str, SettingView]) -> APIRouter:
    """Returns the routes. `settings` has the present settings by `section.key`."""
    router = APIRouter(tags=["server"], responses=responses())

    @router.get("/v1/stats")
    async def stats(snapshot: Fresh) -> Stats:
        """The server as a whole: totals, times by phase, memory, histograms."""
        return snapshot.stats

    @router.get("/metrics", response_class=PlainTextResponse, responses=text_example("fusewire_ops_total 600.0"))
    async def metrics(request: Request) -> Response:
        """All metrics, in the text format of Prometheus."""
        asked_at_ns = time.monotonic_ns()
        snapshot = await fresh_snapshot(request)
        lag_s = max(snapshot.taken_at_ns - asked_at_ns, 0) / 1e9
        return Response(exposition(snapshot, lag_s), media_type=CONTENT_TYPE)

    @router.get("/v1/config", response_model=Settings, responses=NOT_MODIFIED)
    async def config(request: Request) -> Response:
        """Every setting, its value and its origin."""
        return with_etag(request, Settings(settings=settings))

    @router.get("/v1/log")
    async def log() -> LogLevel:
        """The level of the log."""
        return LogLevel(level=control.log_level())

    @router.put("/v1/log", responses=responses(400, 413), openapi_extra=takes(LogLevel))
    async def set_log(request: Request) -> LogLevel:
        """Sets the level of the log until the server ends. Needs the scope `admin`."""
        level = await json_body(request, LogLevel)
        await control.set_log_level(level.level)
        return level

    @router.post("/v1/drain", status_code=HTTPStatus.ACCEPTED)
    async def drain() -> Drain:
        """Takes no more sessions, lets those that there are finish their work, and ends the server. Needs `admin`."""
        control.drain()
        return Drain(is_draining=True)

    return router
