"""Refusals are problems that say what was expected, and show nothing of the server."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import httpx
import pytest

from fusewire_server.inspect.problems import problem
from tests.server.inspect.examples import Client
from tests.server.inspect.routes.applications import application, kind_of


def test_a_refusal_is_a_problem_of_rfc_9457(client: Client) -> None:
    refused = client.get("/v1/programs/none")
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json() == {
        "type": "urn:fusewire:problem:unknown_program",
        "title": "unknown program",
        "status": 404,
        "detail": "there is no program none",
    }


def test_a_fault_of_the_server_shows_no_traceback() -> None:
    app = application()

    @app.get("/v1/broken")
    async def broken() -> None:
        raise RuntimeError("a secret")

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://fusewire") as client:
            return await client.get("/v1/broken")

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.json()["title"], "secret" in answer.text) == (500, "server fault", False)


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/v1/sessions/nobody", 404, "unknown_session"),
        ("GET", "/v1/programs/cc", 404, "unknown_program"),
        ("GET", "/v1/programs/%00%ff", 404, "unknown_program"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/openapi.json", 404, "not_found"),
        ("DELETE", "/v1/stats", 405, "method_not_allowed"),
        ("GET", "/v1/device/hold", 405, "method_not_allowed"),
    ],
)
def test_what_is_not_there_is_a_typed_error(client: Client, method: str, path: str, status: int, error: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, kind_of(answer)) == (status, error)


def test_a_refusal_says_what_was_expected(client: Client) -> None:
    assert client.request("PATCH", "/v1/stats").json()["detail"].endswith("its methods: GET")
    assert "/v1/openapi.json" in client.get("/v1/nothing").json()["detail"]
    assert "less than or equal to 1000" in client.get("/v1/sessions?limit=5000").json()["detail"]


def test_a_refusal_is_bounded_and_can_be_sent_whatever_it_repeats(client: Client) -> None:
    assert len(client.get("/v1/" + "x" * 8000).content) < 2000
    assert problem(HTTPStatus.NOT_FOUND, "unknown", "\ud800").status_code == 404
