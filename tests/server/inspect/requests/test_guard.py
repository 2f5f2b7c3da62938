"""Requests of strangers leave nothing behind in the server."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

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
