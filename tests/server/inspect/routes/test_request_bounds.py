"""Requests that are too long are refused before a route reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from fusewire_server.inspect.routes.request_bounds import (
    LONGEST_BODY_BYTES,
    LONGEST_HEADERS_BYTES,
    LONGEST_TARGET_BYTES,
)
from tests.server.inspect.examples import Client
from tests.server.inspect.routes.applications import application, kind_of


@pytest.mark.parametrize("target", ["/" + "x" * LONGEST_TARGET_BYTES, "/v1/stats?" + "x" * LONGEST_TARGET_BYTES])
def test_a_long_target_is_refused(client: Client, target: str) -> None:
    refused = client.get(target)
    assert (refused.status_code, kind_of(refused)) == (414, "uri_too_long")


def test_long_headers_are_refused(client: Client) -> None:
    refused = client.request("GET", "/v1/stats", {"x": "x" * LONGEST_HEADERS_BYTES})
    assert (refused.status_code, kind_of(refused)) == (431, "headers_too_large")


def test_a_long_body_is_refused_by_its_length(client: Client) -> None:
    for method, path in (("PUT", "/v1/log"), ("POST", "/v1/drain"), ("GET", "/v1/stats")):
        refused = client.request(method, path, content=bytes(LONGEST_BODY_BYTES + 1))
        assert (refused.status_code, kind_of(refused)) == (413, "body_too_large")


def test_a_long_body_of_unknown_length_is_refused_once_it_is_too_long() -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(64):
            sent.append(1)
            yield b" " * (LONGEST_BODY_BYTES // 8)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(application())
        async with httpx.AsyncClient(transport=transport, base_url="http://fusewire") as client:
            return await client.put("/v1/log", content=endless())

    sent: list[int] = []
    refused = asyncio.run(ask())
    assert (refused.status_code, kind_of(refused)) == (413, "body_too_large")
    assert len(sent) < 16


def test_a_body_within_the_bounds_is_read(client: Client) -> None:
    body = b'{"level": "debug"}' + b" " * (LONGEST_BODY_BYTES - 18)
    assert client.request("PUT", "/v1/log", content=body).json() == {"level": "debug"}
