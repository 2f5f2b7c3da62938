"""Checks who may make a request: tokens, the name of the host, pages of browsers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import quote

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fusewire_protos.address import read_address
from fusewire_protos.errors import Unauthenticated
from fusewire_server.access.tokens import Authenticator, Principal, bearer
from fusewire_server.access.tokens import Scope as TokenScope
from fusewire_server.inspect.requests.problems import Refused

_audit = logging.getLogger("fusewire.audit")

# /readyz answers one word to everybody; it checks the token itself for more. The others hold no data.
_OPEN_PATHS = frozenset({"/", "/livez", "/readyz", "/docs", "/ui/", "/ui/{file:path}"})
# Those that answer a token of the scope `use` too, with what its tenant may see.
_TENANTS_PATHS = frozenset({"/v1/live", "/v1/programs/{digest}", "/v1/sessions/{session}/company"})
_READING_METHODS = frozenset({"GET", "HEAD"})
IS_HEAD = "fusewire.is_head"  # the place in a request's scope that tells that only the head of the answer is wanted

Check = Callable[[Request], Awaitable[None]]


def token_check(authenticator: Authenticator | None) -> Check:
    """Returns the check of every route: reading needs the scope `inspect`, any other method `admin`."""

    async def check(request: Request) -> None:
        path = request.scope["route"].path
        if path in _OPEN_PATHS:
            return
        if request.method in _READING_METHODS:
            scopes = (TokenScope.USE,) if path in _TENANTS_PATHS else ()
            request.state.principal = check_scope(authenticator, TokenScope.INSPECT, request, *scopes)
            return
        _refuse_pages(request, authenticator)
        check_scope(authenticator, TokenScope.ADMIN, request)
        peer = request.client.host if request.client else ""
        _audit.info("an operator calls %s %s", request.method, quote(request.scope["path"]), extra={"peer": peer})

    return check


def tenant_of(request: Request) -> str | None:
    """Returns the only tenant whose sessions the caller may see; None: all of them."""
    principal: Principal | None = request.state.principal
    return None if principal is None or principal.may(TokenScope.INSPECT) else principal.tenant


def may_operate(request: Request) -> bool:
    """Tells whether the caller may call what changes the server."""
    principal: Principal | None = request.state.principal
    return principal is None or principal.may(TokenScope.ADMIN)


def check_scope(
    authenticator: Authenticator | None, scope: TokenScope, request: Request, *others: TokenScope
) -> Principal | None:
    """Refuses a request whose token has neither the scope nor one of the others. Returns the caller.

    Without an authenticator everybody has every scope, and the caller is None.
    """
    if authenticator is None:
        return None
    try:
        principal = authenticator.identify(bearer(request.headers.get("authorization")))
    except Unauthenticated as reason:
        raise Refused(HTTPStatus.UNAUTHORIZED, "unauthenticated", str(reason)) from None
    if not any(principal.may(each) for each in (scope, *others)):
        message = f"the token {principal.token_id} has the scope {principal.scope.value}; this needs {scope.value}"
        raise Refused(HTTPStatus.FORBIDDEN, "insufficient_scope", message)
    return principal


async def refuse_foreign_names(request: Request) -> None:
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
        raise Refused(HTTPStatus.MISDIRECTED_REQUEST, "wrong_host", message)


def refuse_other_sites(request: Request) -> None:
    """Refuses a request that a page of another site makes. Browsers tell it, if not by Origin then by Sec-Fetch-Site.

    Such a page could not read the answer, but it would operate the server, or take a place of those who may watch it:
    any page in a browser may send requests to a port of the browser's machine.
    """
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    is_ours = origin is None or origin.partition("://")[2] == request.headers.get("host")
    if not is_ours or site not in {"same-origin", "none"}:
        raise Refused(HTTPStatus.FORBIDDEN, "cross_site", "pages of other sites may not watch or operate this server")


def _refuse_pages(request: Request, authenticator: Authenticator | None) -> None:
    """Refuses what a web page asks for, unless it is our own page with a token, which no browser sends by itself.

    A server without tokens refuses all pages: one whose domain is made to point to this machine looks like our own.
    """
    refuse_other_sites(request)
    has_token = authenticator is not None and request.headers.get("authorization", "").startswith("Bearer ")
    if "origin" in request.headers and not has_token:
        raise Refused(HTTPStatus.FORBIDDEN, "cross_site", "a page operates this server by a token only")


class HeadAsGet:
    """Answers HEAD as GET, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET", IS_HEAD: True}, receive, send_head)
