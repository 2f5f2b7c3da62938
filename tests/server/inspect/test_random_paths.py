"""Random requests are answered with a refusal of a known kind, in few bytes, and do nothing.

`FUSEWIRE_RANDOM_PATHS=100000` sends so many in place of 10,000.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

from fusewire_server.access.tokens import Authenticator, Scope, mint
from fusewire_server.inspect.application import create_app
from tests.server.inspect.examples import FixedSnapshots, RememberingControl

_REQUESTS = int(os.environ.get("FUSEWIRE_RANDOM_PATHS", "10000"))
_MOST_BYTES = 2_000
_PARTS = ("v1", "ui", "live", "sessions", "programs", "company", "arrays", "queue", "slowlog", "failures", "pool")
_MORE_PARTS = ("log", "why", "tenants", "stats", "metrics", "config", "drain", "device", "hold", "0123456789ab", "aa")
_STRANGE = (
    "..",
    ".",
    "%2e%2e",
    "%00",
    "\0",
    "é",
    "\u202e",
    "{session}",
    "*",
    ";",
    "a" * 3000,
    "//evil.example",
    "-1",
    "\n",
)
_METHODS = ("GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW")
_QUERIES = (
    "",
    "",
    "limit=1",
    "limit=9e99",
    "after=%00",
    "token=a.b",
    "pixel_ns=-1",
    "sort=-",
    "=&=",
    "a" * 3000,
    "%ff",
)
_OPEN = {"/", "/livez", "/readyz", "/docs"}
_REFUSALS = {401, 403, 404, 405, 413, 421, 422}


class _Request:
    """A drawn request, and its answer."""

    def __init__(self, draw: random.Random, token: str) -> None:
        parts = [draw.choice(draw.choice((_PARTS, _PARTS, _MORE_PARTS, _STRANGE))) for _ in range(draw.randrange(6))]
        self.path = "/" + "/".join(parts)
        headers = {
            b"host": draw.choice((b"fusewire", b"", b"evil.example", b"\xff")),
            b"authorization": draw.choice((b"Bearer ", b"Bearer a.b", b"Basic eDp5", b"\xff", token.encode())),
            b"origin": draw.choice((b"null", b"http://fusewire", b"https://evil.example")),
            b"accept": draw.choice((b"text/html", b"*/*", b"\xff")),
        }
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": draw.choice(_METHODS),
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": draw.choice(_QUERIES).encode(),
            "headers": [(name, value) for name, value in headers.items() if draw.random() < 0.5],
            "client": ("127.0.0.1", 1),
            "server": ("fusewire", 80),
            "http_version": "1.1",
            "scheme": "http",
        }
        self.body = draw.choice((b"", b"{", b'{"level": "debug"}', bytes(100)))
        self.status, self.kind, self.size_bytes = 0, "", 0

    async def receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.kind = dict(message["headers"]).get(b"content-type", b"").decode()
        self.size_bytes += len(message.get("body", b""))


def test_random_requests_do_nothing_and_are_refused_in_few_bytes(tmp_path: Path) -> None:
    draw, control = random.Random(0), RememberingControl()
    refused = mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE).partition(".")[0] + ".wrong"
    app: Any = create_app(FixedSnapshots(), Authenticator(tmp_path / "tokens"), control)
    statuses: Counter[int] = Counter()

    async def send_all() -> None:
        for _ in range(_REQUESTS):
            request = _Request(draw, f"Bearer {refused}")
            await app(request.scope, request.receive, request.send)
            statuses[request.status] += 1
            # Starlette ends the pattern of a path by `$`, which a line end may follow.
            if request.path.removesuffix("\n") in _OPEN or request.path.startswith("/ui/"):
                continue
            assert request.status in _REFUSALS, request.scope
            assert request.size_bytes <= _MOST_BYTES, request.scope
            assert request.kind == "application/problem+json", request.scope

    asyncio.run(send_all())
    assert control.calls == []
    assert {401, 404, 405} <= statuses.keys()
    assert statuses.keys() <= _REFUSALS | {200, 307}
