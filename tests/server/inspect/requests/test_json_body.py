"""A body is read by a route that takes one, up to a limit, and refused if it makes no sense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from fusewire_server.inspect.application import create_app
from tests.server.inspect.examples import Client, FixedSnapshots, RememberingControl

_PIECE_BYTES = 1 << 16
_PIECES = 100  # more than may be read


@pytest.fixture
def client() -> Client:
    return Client(create_app(FixedSnapshots(), None, RememberingControl()))


class _LongBody:
    """A body that counts the pieces that are read of it."""

    def __init__(self) -> None:
        self.read = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        for _ in range(_PIECES):
            self.read += 1
            yield bytes(_PIECE_BYTES)

    def sent(self, client: Client, method: str, path: str) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(client.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://fusewire") as caller:
                return await caller.request(method, path, content=self.pieces())

        return asyncio.run(send())


def test_a_body_that_is_too_long_is_refused_without_being_read_to_its_end(client: Client) -> None:
    body = _LongBody()
    answer = body.sent(client, "PUT", "/v1/log")
    assert (answer.status_code, answer.json()["title"]) == (413, "body too long")
    assert body.read <= 18


def test_a_route_that_takes_no_body_reads_none(client: Client) -> None:
    body = _LongBody()
    assert body.sent(client, "POST", "/v1/device/hold").status_code == 200
    assert body.read <= 1


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
