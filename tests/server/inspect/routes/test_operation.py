"""Settings, the level of the log, and the end of the server."""

from __future__ import annotations

import pytest

from fusewire_server.inspect.routes.application import create_app
from fusewire_server.inspect.routes.sources import SettingView
from tests.server.inspect.examples import Client, RememberingControl, sources
from tests.server.inspect.routes.applications import application, kind_of


def test_settings_are_told_with_their_origins() -> None:
    settings = {"limits.sessions": SettingView(value=8, origin="flag --sessions")}
    app = create_app(sources(settings=settings), None)
    assert Client(app).get("/v1/config").json() == {
        "settings": {"limits.sessions": {"value": 8, "origin": "flag --sessions"}}
    }


def test_the_level_of_the_log_is_told_and_changed(client: Client) -> None:
    assert client.get("/v1/log").json() == {"level": "info"}
    assert client.request("PUT", "/v1/log", content=b'{"level": "debug"}').json() == {"level": "debug"}
    assert client.get("/v1/log").json() == {"level": "debug"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"level": "loud"}',
        b'{"level": null}',
        b'{"level": "info", "more": 1}',
        b'{"level": "\\ud800"}',
        b"[" * 100_000,
        b"\xff",
        b"level=info",
        None,
    ],
)
def test_a_body_that_is_not_as_described_is_refused_and_changes_nothing(client: Client, body: bytes | None) -> None:
    refused = client.request("PUT", "/v1/log", content=body)
    assert (refused.status_code, kind_of(refused)) == (422, "bad_parameter")
    assert refused.json()["detail"].startswith("body")
    assert client.get("/v1/log").json() == {"level": "info"}


def test_settings_that_did_not_change_are_not_sent_again() -> None:
    client = Client(create_app(sources(), None))
    tag = client.get("/v1/config").headers["etag"]
    assert client.request("GET", "/v1/config", {"if-none-match": f'"other", W/{tag}'}).status_code == 304
    assert client.request("GET", "/v1/config", {"if-none-match": '"other"'}).status_code == 200


def test_a_server_is_told_to_end(client: Client) -> None:
    control = RememberingControl()
    answer = Client(application(control=control)).post("/v1/drain")
    assert (answer.status_code, answer.json(), control.told) == (202, {"is_draining": True}, ["drain"])
