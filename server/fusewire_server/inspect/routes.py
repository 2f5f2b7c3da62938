"""Serves the REST routes of inspection from fresh snapshots. Some routes operate the server.

If tokens are configured, a request to any route needs a token. Only `/livez`, and `/readyz` without `?verbose`, need
none, because they answer one word. A route answers with data of a snapshot that is taken after the request has come,
and tells the snapshot's age in the header `snapshot-age-ms`. Or it refuses with a `Problem`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Annotated, Protocol

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from fusewire_protos.address import read_address
from fusewire_protos.errors import Unauthenticated
from fusewire_server.access.tokens import Authenticator, Scope, bearer
from fusewire_server.inspect.metrics import CONTENT_TYPE, exposition
from fusewire_server.inspect.snapshot import ProgramDetail, ProgramView, SessionView, Snapshot, Stats
from fusewire_server.inspect.snapshot_reader import StaleSnapshot

_audit = logging.getLogger("fusewire.audit")

_AGE_HEADER = "snapshot-age-ms"
_PROBLEM_PREFIX = "urn:fusewire:problem:"
_MOST_DETAIL = 1000

_OPEN_PATHS = frozenset({"/livez", "/readyz"})
_READING_METHODS = frozenset({"GET", "HEAD"})


class Snapshots(Protocol):
    """Gives snapshots to the inspection thread."""

    def newest(self) -> Snapshot:
        """Returns the last published snapshot, however old it is."""

    async def fresh(self) -> Snapshot:
        """Returns a snapshot that is taken now. Raises StaleSnapshot if the loop thread is too busy to take one."""


class Control(Protocol):
    """Operations on the server. They return at once, and may be called on any thread."""

    def hold(self) -> None:
        """Stops new submissions. Submissions that have begun go on, and sessions stay open."""

    def release(self) -> None:
        """Lets the device take submissions again."""

    def drain(self) -> None:
        """Lets sessions finish their work, and ends the server. The second call ends it at once."""


class Problem(BaseModel):
    """The reason for a refusal, as RFC 9457 has it. `type` is a fixed word for programs, `detail` is for people."""

    type: str
    title: str
    status: int
    detail: str


class Sessions(BaseModel):
    """All sessions, detached ones included."""

    sessions: tuple[SessionView, ...]


class Programs(BaseModel):
    """All programs that the server knows."""

    programs: tuple[ProgramView, ...]


class TenantView(BaseModel):
    """The sessions of one tenant together."""

    tenant: str
    sessions: int
    in_flight_ops: int
    live_handles: int
    live_bytes: int
    unread_bytes: int
    device_ns: int


class Tenants(BaseModel):
    """All tenants that have sessions."""

    tenants: tuple[TenantView, ...]


class SettingView(BaseModel):
    """The value of a setting, and where it was set: default, file, environment or flag."""

    value: str | int | float | bool | None
    origin: str


class Settings(BaseModel):
    """All settings of the server by `section.key`. They hold no secrets, only the names of files that do."""

    settings: Mapping[str, SettingView]


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


class Gate(BaseModel):
    """Tells whether the device is held after the request."""

    is_held: bool


class Drain(BaseModel):
    """Tells that the server has begun to end."""

    is_draining: bool


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail


def create_app(
    snapshots: Snapshots,
    authenticator: Authenticator | None,
    control: Control,
    *,
    settings: Mapping[str, SettingView] | None = None,
    is_local: bool = False,
) -> FastAPI:
    """Returns the application. Without an authenticator the application serves everybody who can connect.

    `is_local` says that the application listens on a loopback address only.
    """
    app = FastAPI(
        title="Fusewire inspection",
        dependencies=[*([Depends(_refuse_foreign_names)] if is_local else []), Depends(_guard(authenticator))],
        # Off, because FastAPI's own documentation pages would answer without a token.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.snapshots = snapshots
    _add_health(app, snapshots, authenticator)
    _add_sessions(app)
    _add_programs(app)
    _add_operation(app, control)
    _add_settings(app, settings or {})
    app.add_exception_handler(_Refused, _answer_refused)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, _answer_bad_parameter)
    app.add_exception_handler(Exception, _answer_fault)
    return app


def _guard(authenticator: Authenticator | None) -> Callable[[Request], Awaitable[None]]:
    """Returns the check of every route: reading needs the scope `inspect`, any other method `admin`."""

    async def check(request: Request) -> None:
        if request.scope["path"] in _OPEN_PATHS:
            return
        if request.method in _READING_METHODS:
            _check(authenticator, Scope.INSPECT, request)
            return
        _refuse_pages(request)
        _check(authenticator, Scope.ADMIN, request)
        peer = request.client.host if request.client else ""
        _audit.info("an operator calls %s", request.scope["path"], extra={"peer": peer})

    return check


def _check(authenticator: Authenticator | None, scope: Scope, request: Request) -> None:
    if authenticator is None:
        return
    try:
        principal = authenticator.identify(bearer(request.headers.get("authorization")))
    except Unauthenticated as reason:
        raise _Refused(HTTPStatus.UNAUTHORIZED, "unauthenticated", str(reason)) from None
    if not principal.may(scope):
        message = f"the token {principal.token_id} has the scope {principal.scope.value}; this needs {scope.value}"
        raise _Refused(HTTPStatus.FORBIDDEN, "insufficient_scope", message)


async def _refuse_foreign_names(request: Request) -> None:
    """Refuses a request that names another host than this machine, on a server that listens on loopback only.

    The owner of a domain may let its name point to 127.0.0.1. Then a page of this domain could read the answers of this
    server in the browser of a user of this machine (DNS rebinding).
    """
    host = request.headers.get("host", "")
    try:
        is_ours = read_address(host if ":" in host.rpartition("]")[2] else f"{host}:80").is_loopback()
    except ValueError:
        is_ours = False
    if not is_ours:
        message = f"the Host header is {host!r}; this server answers on localhost, 127.0.0.1 and [::1] only"
        raise _Refused(HTTPStatus.MISDIRECTED_REQUEST, "wrong_host", message)


def _refuse_pages(request: Request) -> None:
    """Refuses a request of a web page, because any page in a browser may post to a port of the browser's machine."""
    if "origin" in request.headers:
        raise _Refused(HTTPStatus.FORBIDDEN, "cross_site", "pages in a browser may not operate the device")


async def _fresh(request: Request, response: Response) -> Snapshot:
    """Returns a fresh snapshot for a route, and puts its age into the answer."""
    snapshots: Snapshots = request.app.state.snapshots
    try:
        snapshot = await snapshots.fresh()
    except StaleSnapshot as reason:
        raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, "busy", str(reason)) from None
    age_ns = time.monotonic_ns() - snapshot.taken_at_ns
    response.headers[_AGE_HEADER] = f"{age_ns / 1e6:.1f}"
    return snapshot


Fresh = Annotated[Snapshot, Depends(_fresh)]


def _add_health(app: FastAPI, snapshots: Snapshots, authenticator: Authenticator | None) -> None:
    @app.get("/livez", response_class=PlainTextResponse)
    async def livez() -> str:
        """Answers with one word if the process is alive."""
        return "alive"

    @app.get("/readyz", response_class=PlainTextResponse, responses={503: {"description": "not now"}})
    async def readyz(request: Request, verbose: str | None = None) -> Response:
        """Answers with one word whether the server takes new sessions. With `?verbose`, also says why."""
        try:
            stats = (await snapshots.fresh()).stats
        except StaleSnapshot:
            stats = snapshots.newest().stats
        status = HTTPStatus.OK if _takes_sessions(stats) else HTTPStatus.SERVICE_UNAVAILABLE
        if verbose is None:
            return PlainTextResponse(_ready_word(stats), status)
        _check(authenticator, Scope.INSPECT, request)
        return JSONResponse(_readiness(stats).model_dump(), status)


def _add_sessions(app: FastAPI) -> None:
    @app.get("/v1/stats")
    async def stats(snapshot: Fresh) -> Stats:
        """The server as a whole: totals, times by phase, memory, histograms."""
        return snapshot.stats

    @app.get("/v1/sessions")
    async def sessions(snapshot: Fresh) -> Sessions:
        """Every session: its client, its work in flight, its memory."""
        return Sessions(sessions=snapshot.sessions)

    @app.get("/v1/tenants")
    async def tenants(snapshot: Fresh) -> Tenants:
        """Every tenant that has sessions: their work in flight, their memory, their device time."""
        return Tenants(tenants=tuple(_tenants_of(snapshot)))

    @app.get("/v1/sessions/{session}", responses={404: {"model": Problem}})
    async def one_session(snapshot: Fresh, session: str) -> SessionView:
        """One session, by its shown id."""
        return _session_of(snapshot, session)


def _add_programs(app: FastAPI) -> None:
    @app.get("/v1/programs")
    async def programs(snapshot: Fresh) -> Programs:
        """Every program: its size, tier, hits and times."""
        return Programs(programs=tuple(detail.program for detail in snapshot.programs))

    @app.get("/v1/programs/{digest}", responses={404: {"model": Problem}})
    async def one_program(snapshot: Fresh, digest: str) -> ProgramDetail:
        """One program: also its groups, which ops were fused, why other ops were not, and its generated source."""
        return _program_of(snapshot, digest)

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """All metrics, in the text format of Prometheus."""
        asked_at_ns = time.monotonic_ns()
        snapshot = await _fresh(request, Response())
        lag_s = max(snapshot.taken_at_ns - asked_at_ns, 0) / 1e9
        return Response(exposition(snapshot, lag_s), media_type=CONTENT_TYPE)

    @app.get("/v1/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(app.openapi())


def _add_operation(app: FastAPI, control: Control) -> None:
    @app.post("/v1/device/hold")
    async def hold() -> Gate:
        """Stops new submissions until the device is released. Sessions go on filling their credit."""
        control.hold()
        return Gate(is_held=True)

    @app.post("/v1/device/release")
    async def release() -> Gate:
        """Lets the device take submissions again."""
        control.release()
        return Gate(is_held=False)

    @app.post("/v1/drain", status_code=HTTPStatus.ACCEPTED)
    async def drain() -> Drain:
        """Takes no more sessions, lets those that there are finish their work, and ends the server."""
        control.drain()
        return Drain(is_draining=True)


def _add_settings(app: FastAPI, settings: Mapping[str, SettingView]) -> None:
    @app.get("/v1/config")
    async def config() -> Settings:
        """Every setting, its value and its origin."""
        return Settings(settings=settings)


def _tenants_of(snapshot: Snapshot) -> Iterator[TenantView]:
    by_tenant: dict[str, list[SessionView]] = {}
    for view in snapshot.sessions:
        by_tenant.setdefault(view.tenant, []).append(view)
    for tenant, views in sorted(by_tenant.items()):
        yield TenantView(
            tenant=tenant,
            sessions=len(views),
            in_flight_ops=sum(view.in_flight_ops for view in views),
            live_handles=sum(view.live_handles for view in views),
            live_bytes=sum(view.live_bytes for view in views),
            unread_bytes=sum(view.unread_bytes for view in views),
            device_ns=sum(view.device_ns for view in views),
        )


def _session_of(snapshot: Snapshot, session: str) -> SessionView:
    for view in snapshot.sessions:
        if view.session == session:
            return view
    raise _Refused(HTTPStatus.NOT_FOUND, "unknown_session", f"there is no session {session}")


def _program_of(snapshot: Snapshot, digest: str) -> ProgramDetail:
    for detail in snapshot.programs:
        if detail.program.digest == digest:
            return detail
    raise _Refused(HTTPStatus.NOT_FOUND, "unknown_program", f"there is no program {digest}")


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


async def _answer_refused(_request: Request, refused: Exception) -> Response:
    assert isinstance(refused, _Refused)
    headers = {"WWW-Authenticate": "Bearer"} if refused.status is HTTPStatus.UNAUTHORIZED else None
    return _problem(refused.status, refused.kind, refused.detail, headers)


async def _answer_http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    return _problem(status, status.phrase.lower().replace(" ", "_"), error.detail, error.headers)


async def _answer_bad_parameter(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    details = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return _problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_parameter", details[:_MOST_DETAIL])


async def _answer_fault(_request: Request, _error: Exception) -> Response:
    return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "server_fault", "the server failed; its log tells why")


def _problem(status: HTTPStatus, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    problem = Problem(type=_PROBLEM_PREFIX + kind, title=kind.replace("_", " "), status=status, detail=detail)
    return JSONResponse(problem.model_dump(), status, headers, media_type="application/problem+json")
