"""Bodies that are too long are refused before they are read."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from fusewire_server.inspect.application import create_app
from tests.server.inspect.examples import Client, FixedSnapshots, RememberingControl


async def _status(app: Any, scope: dict[str, Any]) -> int:
    """The status of the answer to a request without a body."""
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    return status


@pytest.fixture
def client() -> Client:
    return Client(create_app(FixedSnapshots(), None, RememberingControl()))


def test_a_body_that_is_declared_too_long_is_refused(client: Client) -> None:
    answer = client.request("PUT", "/v1/log", content=bytes((1 << 20) + 1))
    assert (answer.status_code, answer.json()["title"]) == (413, "body too long")


def test_a_body_that_turns_out_too_long_is_refused(client: Client) -> None:
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield bytes(1 << 16)

    async def test() -> httpx.Response:
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://fusewire") as caller:
            return await caller.put("/v1/log", content=body(), headers={"content-type": "application/json"})

    answer = asyncio.run(test())
    assert answer.status_code == 413
    assert read <= 18


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"level": 3}',
        b'{"level": "loud"}',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"level": "' + b"x" * 10_000,
    ],
)
def test_a_body_that_makes_no_sense_is_a_problem(client: Client, content: bytes) -> None:
    answer = client.request("PUT", "/v1/log", content=content)
    assert answer.status_code in {400, 422}
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 2000


@pytest.mark.parametrize("paths", [5_000, pytest.param(100_000, marks=pytest.mark.faults)])
def test_random_paths_leave_nothing_behind(client: Client, paths: int) -> None:
    """A path that names nothing must not become a metric's label, a cache's entry or a log's key."""

    async def ask(count: int) -> None:
        for number in range(count):
            path = f"/v1/{'sessions' if number % 2 else 'x'}/{number:x}"
            scope: dict[str, Any] = {
                "type": "http",
                "asgi": {"version": "3.0"},
                "http_version": "1.1",
                "method": "GET",
                "scheme": "http",
                "path": path,
                "raw_path": path.encode(),
                "query_string": b"",
                "root_path": "",
                "headers": [],
                "client": ("127.0.0.1", 1),
                "server": ("127.0.0.1", 2),
                "state": {},
            }
            statuses.add(await _status(client.app, scope))

    statuses: set[int] = set()
    metrics_before = client.get("/metrics").text.count("\n")
    asyncio.run(ask(1000))
    tracemalloc.start()
    try:
        asyncio.run(ask(1000))
        before = tracemalloc.get_traced_memory()[0]
        asyncio.run(ask(paths))
        grown_bytes = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert statuses == {404}
    assert grown_bytes < 50_000
    assert client.get("/metrics").text.count("\n") == metrics_before
