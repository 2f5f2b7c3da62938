"""`fusewire ui`: opens the page of a server in the browser, through a proxy of this command on this machine.

The proxy has the token and trusts the server's certificate, so that the browser needs neither. It answers only who has
the key in the link that it opens, because all users and pages of this machine can reach its port. The page's acts go
through it too, with what the command's token allows.
"""

from __future__ import annotations

import argparse
import hmac
import json
import secrets
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from fusewire._transport.inspection import connection_to, inspect_text
from fusewire_cli.text import harmless

_PIECE_BYTES = 1 << 16
_REQUEST_DEADLINE_S = 10.0
_ANSWER_DEADLINE_S = 30.0  # between two pieces of an answer; a live stream sends some every second
_MOST_AT_ONCE = 32
_MOST_BODY_BYTES = 1 << 16
_OPEN_PATHS = ("/ui/",)  # the page's files, which hold no data
_SERVED_PATHS = (*_OPEN_PATHS, "/v1/")
_PASSED_HEADERS = frozenset(
    {
        *("content-type", "content-security-policy", "cache-control", "etag", "x-content-type-options"),
        *("cross-origin-opener-policy", "cross-origin-resource-policy", "referrer-policy", "snapshot-age-ms"),
    }
)


class Server(NamedTuple):
    """The address of a server's inspection, and what to trust."""

    http: str
    tls_ca: str | None


class Proxy(ThreadingHTTPServer):
    """Serves the page of a server to who has the key."""

    daemon_threads = True

    def __init__(self, server: Server, port: int = 0) -> None:
        """Listens on 127.0.0.1. Raises OSError if the port is taken."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.target = server
        self.key = secrets.token_urlsafe(32)
        self.places = threading.BoundedSemaphore(_MOST_AT_ONCE)

    @property
    def url(self) -> str:
        """The link of the page, with the key in its fragment, which a browser sends to nobody."""
        return f"http://127.0.0.1:{self.server_port}/ui/#token={self.key}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing of a browser that has closed its connection."""


def run(parsed: argparse.Namespace) -> int:
    """Serves the page until it is interrupted. Raises FusewireError if the server does not answer, and OSError."""
    inspect_text("/livez", parsed.http, parsed.tls_ca)
    with Proxy(Server(parsed.http, parsed.tls_ca), parsed.port) as proxy:
        text = f"{proxy.url}\nshows the server at {harmless(parsed.http)} until this command is interrupted"
        print(json.dumps({"url": proxy.url}) if parsed.json else text, flush=True)
        with suppress(KeyboardInterrupt), leading_to(proxy.url) as link:
            if not parsed.no_browser:
                threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
            proxy.serve_forever()
    return 0


@contextmanager
def leading_to(url: str) -> Iterator[str]:
    """Yields the address of a file that leads to a link. Only its owner can read it.

    All users of a machine may see what a browser is started with, so that it must not be the key.
    """
    with NamedTemporaryFile("w", prefix="fusewire-ui-", suffix=".html") as file:  # which has the mode 0600
        file.write(f'<meta http-equiv="refresh" content="0;url={escape(url)}">')
        file.flush()
        yield Path(file.name).as_uri()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of the browser."""

    server: Proxy
    timeout = _REQUEST_DEADLINE_S

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - as http.server names them

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as http.server names it
        """Writes no line for a request."""

    def _answer(self) -> None:
        if self.headers.get("host") not in {f"{name}:{self.server.server_port}" for name in ("127.0.0.1", "localhost")}:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this is the proxy of fusewire ui")
        elif not self.path.startswith(_SERVED_PATHS):
            self._refuse(HTTPStatus.NOT_FOUND, "the page is at /ui/")
        elif not self._is_open() and not self._has_key():
            self._refuse(HTTPStatus.UNAUTHORIZED, "open the link that `fusewire ui` has printed")
        elif self._body_bytes() > _MOST_BODY_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {_MOST_BODY_BYTES} bytes")
        elif not self.server.places.acquire(blocking=False):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"{_MOST_AT_ONCE} requests are under way already")
        else:
            try:
                self._forward()
            finally:
                self.server.places.release()

    def _is_open(self) -> bool:
        """Returns whether the request is for a file of the page, which needs no key, and is sent without the token."""
        return self.command == "GET" and self.path.startswith(_OPEN_PATHS)

    def _has_key(self) -> bool:
        return hmac.compare_digest(self.headers.get("authorization", "").encode(), f"Bearer {self.server.key}".encode())

    def _body_bytes(self) -> int:
        length = self.headers.get("content-length", "0")
        return int(length) if length.isdecimal() and len(length) < 10 else _MOST_BODY_BYTES + 1

    def _forward(self) -> None:
        connection, headers = connection_to(*self.server.target, _ANSWER_DEADLINE_S)
        try:
            body = self.rfile.read(self._body_bytes()) or None
            sent = {"Content-Type": self.headers["content-type"]} if self.headers["content-type"] else {}
            connection.request(self.command, self.path, body, sent if self._is_open() else {**sent, **headers})
            answer = connection.getresponse()
        except (OSError, HTTPException, ValueError) as reason:  # ValueError: a path that is no ASCII
            connection.close()
            self._refuse(HTTPStatus.BAD_GATEWAY, f"the server at {self.server.target.http} does not answer: {reason}")
            return
        try:
            self._copy(answer)
        except (OSError, HTTPException):
            self.close_connection = True  # the browser has gone, or the server: the end of the connection tells it
        finally:
            connection.close()

    def _copy(self, answer: HTTPResponse) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() in _PASSED_HEADERS:
                self.send_header(name, value)
        self.end_headers()
        while piece := answer.read1(_PIECE_BYTES):
            self.wfile.write(piece)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        body = json.dumps({"detail": text}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
