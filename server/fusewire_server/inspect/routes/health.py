"""Routes that tell whether the server lives and takes sessions, and the metrics."""

from __future__ import annotations

import time
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel

from fusewire_server.access.tokens import Scope
from fusewire_server.inspect.metrics import CONTENT_TYPE, exposition
from fusewire_server.inspect.routes.sources import Fresh, Guarded, Served, fresh_snapshot
from fusewire_server.inspect.snapshot import Stats
from fusewire_server.inspect.snapshot_reader import StaleSnapshot


class Readiness(BaseModel):
    """Tells whether the server takes sessions, and why or why not."""

    is_ready: bool
    is_draining: bool
    is_held: bool
    trouble: str
    backend: str
    device: str
    device_memory_bytes: int
    live_bytes: int
    pool_bytes: int


def add_routes(app: FastAPI) -> None:
    app.get("/livez", response_class=PlainTextResponse)(livez)
    app.get("/readyz", response_class=PlainTextResponse, responses={503: {"description": "not now"}})(readyz)
    app.get("/metrics", response_class=PlainTextResponse)(metrics)
    app.get("/v1/stats")(stats)


async def livez() -> str:
    """Answers with one word if the process is alive."""
    return "alive"


async def readyz(request: Request, sources: Served, guard: Guarded, verbose: str | None = None) -> Response:
    """Answers with one word whether the server takes new sessions. With `?verbose`, also says why."""
    try:
        stats = (await sources.snapshots.fresh()).stats
    except StaleSnapshot:
        stats = sources.snapshots.newest().stats
    status = HTTPStatus.OK if _takes_sessions(stats) else HTTPStatus.SERVICE_UNAVAILABLE
    if verbose is None:
        return PlainTextResponse(_ready_word(stats), status)
    guard.require(Scope.INSPECT, request)
    return JSONResponse(_readiness(stats).model_dump(), status)


async def metrics(sources: Served) -> Response:
    """All metrics, in the text format of Prometheus."""
    asked_at_ns = time.monotonic_ns()
    snapshot = await fresh_snapshot(sources)
    lag_s = max(snapshot.taken_at_ns - asked_at_ns, 0) / 1e9
    return Response(exposition(snapshot, lag_s), media_type=CONTENT_TYPE)


async def stats(snapshot: Fresh) -> Stats:
    """The server as a whole: totals, times by phase, memory, histograms."""
    return snapshot.stats


def _takes_sessions(stats: Stats) -> bool:
    return stats.is_ready and not stats.is_draining


def _ready_word(stats: Stats) -> str:
    if stats.is_draining:
        return "draining"
    return "ready" if stats.is_ready else "unready"


def _readiness(stats: Stats) -> Readiness:
    return Readiness(
        is_ready=stats.is_ready,
        is_draining=stats.is_draining,
        is_held=stats.is_held,
        trouble=stats.trouble,
        backend=stats.backend.name,
        device=stats.backend.device,
        device_memory_bytes=stats.backend.memory_bytes,
        live_bytes=stats.memory.live_bytes,
        pool_bytes=stats.memory.pool_bytes,
    )
