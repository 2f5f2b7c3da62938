"""Routes that tell whether the server lives and takes sessions, and the metrics."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from fusewire_server.access.tokens import Scope
from fusewire_server.inspect.described import DescribedModel
from fusewire_server.inspect.loop_calls import LoopBusy
from fusewire_server.inspect.metrics import CONTENT_TYPE, exposition
from fusewire_server.inspect.routes import examples
from fusewire_server.inspect.routes.description import shows
from fusewire_server.inspect.routes.sources import Fresh, Guarded, Served
from fusewire_server.inspect.snapshot import Stats


class Readiness(DescribedModel):
    """Tells whether the server takes sessions, and why or why not."""

    is_ready: bool
    """Whether the server can do what clients send."""
    is_draining: bool
    """Whether the server shuts down."""
    is_held: bool
    """Whether an operator holds the device."""
    trouble: str
    """Why the machine cannot compile programs now, such as a full disk. Empty if it can."""
    backend: str
    """Name of the backend: cpu, cuda or null."""
    device: str
    """Name of the device."""
    device_memory_bytes: int
    """Memory of the device in bytes."""
    live_bytes: int
    """Bytes of all values now."""
    pool_bytes: int
    """Free bytes that the device's pool keeps for later allocations."""


Verbose = Annotated[str | None, Query(max_length=16, description="if given, with any value: also tells why")]
_WORD = {"text/plain": {"schema": {"type": "string"}, "example": "ready"}}


def add_routes(app: FastAPI) -> None:
    app.get("/livez", summary="Whether the process is alive", response_class=PlainTextResponse)(livez)
    app.get(
        "/readyz",
        summary="Whether the server takes sessions",
        response_model=Readiness,
        responses={200: {"content": _WORD}, 503: {"description": "Not now", "model": Readiness, "content": _WORD}},
    )(readyz)
    app.get("/metrics", summary="All metrics", response_class=PlainTextResponse)(metrics)
    app.get("/v1/stats", summary="The server as a whole", responses=shows(examples.STATS))(stats)


async def livez() -> str:
    """Answers with one word if the process is alive."""
    return "alive"


async def readyz(request: Request, sources: Served, guard: Guarded, verbose: Verbose = None) -> Response:
    """Answers with one word whether the server takes new sessions. With `?verbose`, also says why."""
    try:
        stats = (await sources.snapshots.fresh()).stats
    except LoopBusy:
        stats = sources.snapshots.newest().stats
    status = HTTPStatus.OK if _takes_sessions(stats) else HTTPStatus.SERVICE_UNAVAILABLE
    if verbose is None:
        return PlainTextResponse(_ready_word(stats), status)
    guard.require(Scope.INSPECT, request)
    return JSONResponse(_readiness(stats).model_dump(), status)


async def metrics(sources: Served) -> Response:
    """Tells all metrics in the text format of Prometheus."""
    asked_at_ns = time.monotonic_ns()
    snapshot = await sources.snapshots.fresh()
    lag_s = max(snapshot.taken_at_ns - asked_at_ns, 0) / 1e9
    return Response(exposition(snapshot, lag_s), media_type=CONTENT_TYPE)


async def stats(snapshot: Fresh) -> Stats:
    """Tells totals, times by phase, memory and histograms."""
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
