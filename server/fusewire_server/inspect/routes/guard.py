"""Checks who may call a route: by the token, by the name of the host, and not from the pages of others."""

from __future__ import annotations

import logging
from http import HTTPStatus
from urllib.parse import quote

from fastapi import Request

from fusewire_protos.address import read_address
from fusewire_protos.errors import Unauthenticated
from fusewire_server.access.tokens import Authenticator, Scope, bearer
from fusewire_server.inspect.problems import Refused

_audit = logging.getLogger("fusewire.audit")

OPEN_PATHS = frozenset({"/livez", "/readyz", "/docs"})
_READING_METHODS = frozenset({"GET", "HEAD"})


class Guard:
    """The checks of one application. Without an authenticator everybody who can connect may call every route.

    `is_local` says that the application listens on a loopback address only.
    """

    def __init__(self, authenticator: Authenticator | None, *, is_local: bool) -> None:
        self._authenticator = authenticator
        self._is_local = is_local

    async def check(self, request: Request) -> None:
        """Refuses a request that may not call its route.

        Reading needs a token of the scope `inspect`, any other method one of the scope `admin`.
        """
        if self._is_local:
            _refuse_foreign_names(request)
        path = request.scope["path"]
        if path in OPEN_PATHS:
            return
        if request.method in _READING_METHODS:
            self.require(Scope.INSPECT, request)
            return
        self._refuse_pages(request)
        self.require(Scope.ADMIN, request)
        peer = request.client.host if request.client else ""
        _audit.info("an operator calls %s %s", request.method, quote(path), extra={"peer": peer})

    def require(self, scope: Scope, request: Request) -> None:
        """Refuses a request whose token does not have the scope."""
        if self._authenticator is None:
            return
        try:
            principal = self._authenticator.identify(bearer(request.headers.get("authorization")))
        except Unauthenticated as reason:
            headers = {"WWW-Authenticate": "Bearer"}
            raise Refused(HTTPStatus.UNAUTHORIZED, "unauthenticated", str(reason), headers) from None
        if not principal.may(scope):
            message = f"the token {principal.token_id} has the scope {principal.scope.value}; this needs {scope.value}"
            raise Refused(HTTPStatus.FORBIDDEN, "insufficient_scope", message)

    def _refuse_pages(self, request: Request) -> None:
        """Refuses a request of a web page, because any page in a browser may post to a port of the browser's machine.

        This server's own page may ask, but only if the token or the name of the host shows that it is this server's:
        the owner of a domain may let its name point to this server, and then the domain's pages have its origin.
        """
        origin = request.headers.get("origin")
        is_own = origin is not None and origin.partition("://")[2] == request.headers.get("host")
        if origin is None or (is_own and (self._is_local or self._authenticator is not None)):
            return
        raise Refused(HTTPStatus.FORBIDDEN, "cross_site", f"a page of {origin!r} may not operate this server")


def _refuse_foreign_names(request: Request) -> None:
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
