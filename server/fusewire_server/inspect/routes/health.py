"""The routes of health: alive, ready."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import TypeAdapter

from fusewire_server.access.tokens import Authenticator, Scope
from fusewire_server.inspect.figures import read
from fusewire_server.inspect.loop_thread import LoopBusy
from fusewire_server.inspect.requests.guard import check_scope
from fusewire_server.inspect.requests.problems import responses, text_example
from fusewire_server.inspect.routes.fresh import Snapshots
from fusewire_server.inspect.snapshots.answer_age import answers_from
from fusewire_server.inspect.snapshots.snapshot import Stats
from fusewire_server.inspect.views import Readiness

_ANSWER: dict[str, Any] = {
    "description": "one word, or the reasons",
    "content": {
        "text/plain": {"example": "ready"},
        "application/json": {"schema": {"$ref": "#/components/schemas/Readiness"}},
    },
}
_JSON = TypeAdapter(Readiness)
_Verbose = Annotated[str | None, Query(description="if it is given, with any value: also tells why")]
_REFUSALS: dict[int | str, Any] = {status: answer for status, answer in responses(422).items() if status in {401, 422}}


def health_routes(snapshots: Snapshots, authenticator: Authenticator | None) -> APIRouter:
    """Returns the routes. Both answer one word to everybody; the reasons of `/readyz?verbose` need a token."""
    router = APIRouter(tags=["health"])

    @router.get("/livez", response_class=PlainTextResponse, responses=text_example("alive"))
    async def livez() -> str:
        """Answers with one word if the process is alive."""
        return "alive"

    @router.get("/readyz", response_class=PlainTextResponse, responses={200: _ANSWER, **_REFUSALS, 503: _ANSWER})
    async def readyz(request: Request, verbose: _Verbose = None) -> Response:
        """Answers with one word whether the server takes new sessions. With `?verbose`, also says why.

        A server that is too busy to be asked answers as it was last seen. The answer's `snapshot-age-ms` tells when.
        """
        try:
            snapshot = await snapshots.fresh()
        except LoopBusy:
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
    return stats.is_ready and not stats.is_draining


def _ready_word(stats: Stats) -> str:
    if stats.is_draining:
        return "draining"
    return "ready" if stats.is_ready else "unready"
