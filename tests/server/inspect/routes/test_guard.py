"""Who may call which route: by the token, by the name of the host, and not from the pages of others."""

from __future__ import annotations

import pytest

from fusewire_server.access.tokens import Authenticator, Scope
from tests.server.inspect.examples import Client, RememberingControl
from tests.server.inspect.routes.applications import (
    ADMIN_ROUTES,
    ALL_ROUTES,
    OPEN_ROUTES,
    Guarded,
    application,
    body_of,
    kind_of,
    routes_of,
)

_DONE = {("POST", "/v1/drain"): 202, ("DELETE", "/v1/sessions/{session}"): 202}


def test_every_route_but_the_open_ones_refuses_without_a_token(guarded: Guarded) -> None:
    answered = {route for route in routes_of(guarded.app) if guarded.request(route).status_code != 401}
    assert answered == OPEN_ROUTES
    assert guarded.control.told == []


def test_every_route_but_the_open_ones_refuses_an_unknown_token(guarded: Guarded) -> None:
    answered = {route for route in routes_of(guarded.app) if guarded.request(route, "x.y").status_code != 401}
    assert answered == OPEN_ROUTES


@pytest.mark.parametrize(
    ("scope", "closed"),
    [
        (Scope.USE, ALL_ROUTES - OPEN_ROUTES),
        (Scope.INSPECT, ADMIN_ROUTES),
        (Scope.ADMIN, set[tuple[str, str]]()),
    ],
)
def test_a_scope_opens_its_routes_and_no_other(guarded: Guarded, scope: Scope, closed: set[tuple[str, str]]) -> None:
    status = {route: guarded.request(route, guarded.tokens[scope]).status_code for route in routes_of(guarded.app)}
    assert status == {route: 403 if route in closed else _DONE.get(route, 200) for route in ALL_ROUTES}


def test_without_tokens_every_route_answers() -> None:
    app = application()
    client = Client(app)
    filled = [(method, path.format(session="0123456789ab", digest="bb")) for method, path in routes_of(app)]
    assert {client.request(*route, content=body_of(route)).status_code for route in filled} == {200, 202}


@pytest.mark.parametrize("host", ["localhost", "localhost:7424", "127.0.0.1:7424", "127.1.2.3", "[::1]", "[::1]:7424"])
def test_a_local_server_answers_to_the_names_of_this_machine(host: str) -> None:
    answer = Client(application(is_local=True)).request("GET", "/v1/stats", {"host": host})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "host", ["", "fusewire", "evil.example:7424", "localhost.evil.example", "10.0.0.1", "a b", "]:"]
)
def test_a_local_server_refuses_another_name(host: str) -> None:
    app = application(is_local=True)
    for method, path in routes_of(app):
        refused = Client(app).request(method, path, {"host": host})
        assert (refused.status_code, kind_of(refused)) == (421, "wrong_host")


def test_a_server_for_other_machines_answers_to_any_name() -> None:
    assert Client(application()).request("GET", "/v1/stats", {"host": "gpu.example"}).status_code == 200


def test_a_refusal_is_typed_and_asks_for_a_bearer_token(guarded: Guarded) -> None:
    refused = guarded.request(("GET", "/v1/stats"))
    assert kind_of(refused) == "unauthenticated"
    assert refused.headers["www-authenticate"] == "Bearer"


def test_a_revoked_token_is_refused_at_the_next_request(guarded: Guarded) -> None:
    token = guarded.tokens[Scope.INSPECT]
    assert guarded.request(("GET", "/v1/stats"), token).status_code == 200
    guarded.token_file.write_text("")
    assert guarded.request(("GET", "/v1/stats"), token).status_code == 401


def test_a_route_that_is_added_later_is_closed_too(guarded: Guarded) -> None:
    @guarded.app.get("/v1/later")
    async def later() -> str:
        return "open"

    assert guarded.request(("GET", "/v1/later")).status_code == 401


def test_a_page_in_a_browser_cannot_hold_the_device() -> None:
    control = RememberingControl()
    client = Client(application(control=control))
    answer = client.post("/v1/device/hold", headers={"origin": "https://pages.example.org"})
    assert (answer.status_code, kind_of(answer), control.told) == (
        403,
        "cross_site",
        [],
    )


@pytest.mark.parametrize(
    ("origin", "is_local", "has_tokens", "status"),
    [
        ("http://localhost:7424", True, False, 200),
        ("http://localhost:7424", False, True, 200),
        ("http://localhost:7424", False, False, 403),
        ("http://localhost:7425", True, True, 403),
        ("null", True, True, 403),
    ],
)
def test_a_page_may_operate_the_server_only_if_it_is_the_servers_own(
    guarded: Guarded, origin: str, is_local: bool, has_tokens: bool, status: int
) -> None:
    authenticator = Authenticator(guarded.token_file) if has_tokens else None
    headers = {"host": "localhost:7424", "origin": origin, "authorization": f"Bearer {guarded.tokens[Scope.ADMIN]}"}
    client = Client(application(authenticator, is_local=is_local))
    assert client.request("POST", "/v1/device/hold", headers).status_code == status


def test_the_body_of_a_stranger_is_not_read(guarded: Guarded) -> None:
    refused = guarded.client.request("PUT", "/v1/log", content=b"[" * 1000)
    assert refused.status_code == 401


def test_what_an_operator_calls_is_in_the_audit_log_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "fusewire.audit"):
        Client(application()).request("DELETE", "/v1/sessions/a%0Ab")
    (record,) = caplog.records
    assert record.getMessage() == "an operator calls DELETE /v1/sessions/a%0Ab"
