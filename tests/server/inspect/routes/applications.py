"""Applications without a socket, with and without tokens, and the list of all routes."""

from __future__ import annotations

from pathlib import Path

import httpx
from fastapi import FastAPI
from starlette.routing import Route

from fusewire_server.access.tokens import Authenticator, Scope, mint
from fusewire_server.inspect.problems import TYPE_PREFIX
from fusewire_server.inspect.routes.application import create_app
from fusewire_server.inspect.snapshot import Snapshot
from tests.server.inspect.examples import SNAPSHOT, Client, FixedSnapshots, RememberingControl, sources

OPEN_ROUTES = {("GET", "/livez"), ("GET", "/readyz"), ("GET", "/docs")}
ADMIN_ROUTES = {
    ("POST", "/v1/device/hold"),
    ("POST", "/v1/device/release"),
    ("POST", "/v1/drain"),
    ("DELETE", "/v1/sessions/{session}"),
    ("PUT", "/v1/log"),
}
ALL_ROUTES = OPEN_ROUTES | {
    ("GET", "/v1/stats"),
    ("GET", "/v1/sessions"),
    ("GET", "/v1/sessions/{session}"),
    ("GET", "/v1/programs"),
    ("GET", "/v1/programs/{digest}"),
    ("GET", "/v1/tenants"),
    ("GET", "/v1/config"),
    ("GET", "/metrics"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/v1/sessions/{session}/arrays"),
    ("GET", "/v1/pool"),
    ("GET", "/v1/queue"),
    ("GET", "/v1/slowlog"),
    ("GET", "/v1/log"),
    *ADMIN_ROUTES,
}


def application(
    authenticator: Authenticator | None = None,
    *,
    is_local: bool = False,
    snapshot: Snapshot = SNAPSHOT,
    control: RememberingControl | None = None,
    is_busy: bool = False,
) -> FastAPI:
    snapshots = FixedSnapshots(snapshot, is_busy=is_busy)
    return create_app(sources(snapshots, control, is_busy=is_busy), authenticator, is_local=is_local)


def body_of(route: tuple[str, str]) -> bytes | None:
    """A body that the route takes."""
    return b'{"level": "debug"}' if route == ("PUT", "/v1/log") else None


class Guarded:
    """A client of an application with tokens, and one token of each scope."""

    def __init__(self, token_file: Path) -> None:
        self.token_file = token_file
        self.tokens = {scope: mint(token_file, tenant="lab", scope=scope) for scope in Scope}
        self.control = RememberingControl()
        self.app = application(Authenticator(token_file), control=self.control)
        self.client = Client(self.app)

    def request(self, route: tuple[str, str], token: str | None = None) -> httpx.Response:
        method, path = route
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        filled = path.replace("{session}", "0123456789ab").replace("{digest}", "aa")
        return self.client.request(method, filled, headers, body_of(route))


def routes_of(app: FastAPI) -> set[tuple[str, str]]:
    routes = [route for route in app.routes if isinstance(route, Route)]
    assert routes == app.routes, "a route of another kind hides what it serves from these tests"
    return {(method, route.path) for route in routes for method in (route.methods or ()) if method != "HEAD"}


def kind_of(refused: httpx.Response) -> str:
    """The word of a problem that is meant for programs."""
    told: str = refused.json()["type"]
    return told.removeprefix(TYPE_PREFIX)
