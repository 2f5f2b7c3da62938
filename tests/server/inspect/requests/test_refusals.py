"""Refused HTTP requests are counted by case, and the cases are a closed set."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.requests.refusals import CASES, CountedRefusals, RefusalCounts
from tests.server.inspect.examples import FixedSnapshots, RememberingControl


def counted(method: str, path: str) -> dict[str, int]:
    """The counts that are not 0 after one request, of an application whose server is busy."""
    counts = RefusalCounts()
    app = CountedRefusals(create_app(FixedSnapshots(is_busy=True), None, RememberingControl()), counts)

    async def ask() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://fusewire") as client:
            await client.request(method, path)

    asyncio.run(ask())
    return {case: count for case, count in counts.items() if count}


@pytest.mark.parametrize(
    ("method", "path", "case"),
    [
        ("GET", "/nowhere", "not_found"),
        ("PUT", "/v1/stats", "method_not_allowed"),
        ("GET", "/v1/stats", "unavailable"),
    ],
)
def test_a_refusal_counts_as_its_case(method: str, path: str, case: str) -> None:
    assert counted(method, path) == {case: 1}


def test_an_answer_is_no_refusal() -> None:
    assert counted("GET", "/livez") == {}


@pytest.mark.parametrize(("status", "fields"), [(503, {}), (401, {"unauthenticated": 1}), (403, {"forbidden": 1})])
def test_the_state_of_a_server_is_no_refusal_but_a_wrong_token_is(status: int, fields: dict[str, int]) -> None:
    counts = RefusalCounts()

    async def readiness(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})

    asyncio.run(CountedRefusals(readiness, counts)({"type": "http", "path": "/readyz"}, _nothing, _ignore))
    assert {case: count for case, count in counts.items() if count} == fields


async def _nothing() -> dict[str, object]:
    return {}


async def _ignore(_message: object) -> None:
    return None


@pytest.mark.parametrize("status", [402, 418, 599])
def test_an_unusual_status_adds_no_case(status: int) -> None:
    counts = RefusalCounts()
    counts.add(status)
    assert tuple(counts) == CASES
    assert counts["other"] == 1
