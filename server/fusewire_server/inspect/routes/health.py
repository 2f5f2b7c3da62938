"""The routes of health: alive, ready."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import TypeAdapter

from fusewire_server.access.tokens import Authenticator, Scope
from fusewire_server.figures import read
from fusewire_server.inspect.engine_thread import EngineBusy
from fusewire_server.inspect.requests.guard import check_scope
from fusewire_server.inspect.requests.problems import responses, text_example
from fusewire_server.inspect.routes.fresh import Snapshots
from fusewire_server.inspect.snapshots.answer_age import answers_from
from fusewire_server.inspect.snapshots.stats import Stats
from fusewire_server.inspect.views import Readiness

_ANSWER: dict[str, Any] = {
    "description": "one word, or the reasons",
    "content": {
        "text/plain": {"example": "ready"},
        "application/json": {"schema": {"$ref": "#/components/schemas/Readiness"}},
    },
}
_WHERE = """This is the inspection of a Fusewire server. A browser finds its page at /ui/.
/docs describes all routes. /readyz?verbose tells whether it takes sessions, /v1/stats what it does, /v1/sessions for
whom, and /metrics all figures for Prometheus. In a terminal: fusewire status, fusewire top.
"""
_TO_PAGE: dict[int | str, Any] = {307: {"description": "a browser finds the page at /ui/"}}
_JSON = TypeAdapter(Readiness)
_Verbose = Annotated[str | None, Query(description="if it is given, with any value: also tells why")]
_REFUSALS: dict[int | str, Any] = {status: answer for status, answer in responses().items() if status in {401, 422}}
_UNKNOWN: dict[int | str, Any] = {422: _REFUSALS[422]}


def health_routes(snapshots: Snapshots, authenticator: Authenticator | None) -> APIRouter:
    """Returns the routes. Both answer one word to everybody; the reasons of `/readyz?verbose` need a token."""
    router = APIRouter(tags=["health"])

    @router.get("/", response_class=PlainTextResponse, responses={**text_example(_WHERE), **_TO_PAGE, **_UNKNOWN})
    async def where(request: Request) -> Response:
        """Tells which routes to begin with. A browser is led to the page."""
        headers = {"Vary": "Accept"}
        if "text/html" in request.headers.get("accept", ""):
            # Without a host, which the Host header would say.
            return Response(status_code=HTTPStatus.TEMPORARY_REDIRECT, headers={**headers, "Location": "/ui/"})
        return PlainTextResponse(_WHERE, headers=headers)

    @router.get("/livez", response_class=PlainTextResponse, responses={**text_example("alive"), **_UNKNOWN})
    async def livez() -> str:
        """Answers with one word if the process is alive."""
        return "alive"

    @router.get("/readyz", response_class=PlainTextResponse, responses={200: _ANSWER, **_REFUSALS, 503: _ANSWER})
    async def readyz(request: Request, verbose: _Verbose = None) -> Response:
        """Answers with one word whether the server takes new sessions. With `?verbose`, also says why.

        A server that an operator holds takes none. One that cannot compile goes on, and `?verbose` tells its trouble.
        A server that is too busy to be asked answers as it was last seen. The answer's `snapshot-age-ms` tells when.
        """
        try:
            snapshot = await snapshots.fresh()
        except EngineBusy:
            snapshot = snapshots.newest()
        answers_from(request.scope, snapshot)
        stats = snapshot.stats
        status = HTTPStatus.OK if _takes_sessions(stats) else HTTPStatus.SERVICE_UNAVAILABLE
        if verbose is None:
            return PlainTextResponse(_ready_word(stats), status)
        check_scope(authenticator, Scope.INSPECT, request)
        return Response(_JSON.dump_json(read(Readiness, stats)), status, media_type="application/json")

    return router


def _takes_sessions(stats: Stats) -> bool:
    return stats.is_ready and not stats.is_draining and not stats.is_held


def _ready_word(stats: Stats) -> str:
    if stats.is_draining:
        return "draining"
    if stats.is_held:
        return "held"
    return "ready" if stats.is_ready else "unready"
