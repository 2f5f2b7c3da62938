"""The routes: what they answer, and that each of them refuses without a token but those that hold no data."""

import asyncio
import dataclasses
import json
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute, Route

from fusewire_server.access.tokens import Authenticator, Scope, mint, revoke
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.routes import live
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.views import SettingView
from tests.server.inspect.examples import KERNEL_WAITS, SNAPSHOT, STATS, Client, FixedSnapshots, RememberingControl

PAGE_ROUTES = {("GET", "/ui/"), ("GET", "/ui/{file:path}")}
OPEN_ROUTES = PAGE_ROUTES | {("GET", "/"), ("GET", "/livez"), ("GET", "/readyz"), ("GET", "/docs")}
TENANTS_ROUTES = {
    ("GET", "/v1/live"),
    ("GET", "/v1/sessions/{session}/company"),
    ("GET", "/v1/programs/{digest}"),
}
ALL_ROUTES = (
    OPEN_ROUTES
    | TENANTS_ROUTES
    | {
        ("GET", "/v1/stats"),
        ("GET", "/v1/sessions"),
        ("GET", "/v1/sessions/{session}"),
        ("GET", "/v1/sessions/{session}/arrays"),
        ("DELETE", "/v1/sessions/{session}"),
        ("GET", "/v1/ended_sessions"),
        ("GET", "/v1/failures"),
        ("GET", "/v1/pool"),
        ("GET", "/v1/queue"),
        ("GET", "/v1/slowlog"),
        ("GET", "/v1/log"),
        ("PUT", "/v1/log"),
        ("GET", "/v1/programs"),
        ("GET", "/v1/tenants"),
        ("GET", "/v1/config"),
        ("GET", "/metrics"),
        ("GET", "/v1/openapi.json"),
        ("POST", "/v1/device/hold"),
        ("POST", "/v1/device/release"),
        ("POST", "/v1/drain"),
    }
)
ADMIN_ROUTES = {route for route in ALL_ROUTES if route[0] != "GET"}

_DONE = {("POST", "/v1/drain"): 202, ("DELETE", "/v1/sessions/{session}"): 202}
_BODIES = {("PUT", "/v1/log"): b'{"level": "debug"}'}


def application(
    authenticator: Authenticator | None = None,
    *,
    is_local: bool = False,
    snapshot: Snapshot = SNAPSHOT,
    control: RememberingControl | None = None,
    is_busy: bool = False,
) -> FastAPI:
    return create_app(
        FixedSnapshots(snapshot, is_busy=is_busy), authenticator, control or RememberingControl(), is_local=is_local
    )


@cache
def unchanged(*, is_local: bool = False, is_busy: bool = False) -> FastAPI:
    """An application without tokens, for tests that ask it and change nothing: to make one takes long."""
    return application(is_local=is_local, is_busy=is_busy)


@pytest.fixture(autouse=True)
def _ending_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a live stream end before its first message, because these tests wait for the end of each answer."""
    monkeypatch.setattr(live, "STREAM_S", 0.0)


@pytest.fixture
def client() -> Client:
    return Client(unchanged())


def filled(path: str) -> str:
    """A path of a route with what the examples have in it."""
    return path.replace("{session}", "0123456789ab").replace("{digest}", "aa").replace("{file:path}", "main.js")


class Guarded:
    """A client of an application with tokens, and one token of each scope."""

    def __init__(self, token_file: Path) -> None:
        self.token_file = token_file
        self.tokens = {scope: mint(token_file, tenant="lab", scope=scope) for scope in Scope}
        self.control = RememberingControl()
        self.app = application(Authenticator(token_file), control=self.control)
        self.client = Client(self.app)

    def request(self, route: tuple[str, str], token: str | None = None) -> httpx.Response:
        method, path = route
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return self.client.request(method, filled(path), headers, _BODIES.get(route))


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    return Guarded(tmp_path / "tokens")


def routes_of(app: FastAPI) -> set[tuple[str, str]]:
    served = list(_flattened(app.routes))
    routes = [route for route in served if isinstance(route, Route)]
    assert routes == served, "a route of another kind hides what it serves from these tests"
    return {(method, route.path) for route in routes for method in (route.methods or ()) if method != "HEAD"}


def _flattened(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """The routes, with those of each included router in its place. (FastAPI before 0.116 has them there itself.)"""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is None:
            yield route
        else:
            yield from _flattened(included.routes)


def test_the_application_has_these_routes_and_no_other() -> None:
    assert routes_of(application()) == ALL_ROUTES


def test_every_route_with_data_refuses_without_a_token(guarded: Guarded) -> None:
    answered = {route for route in routes_of(guarded.app) if guarded.request(route).status_code != 401}
    assert answered == OPEN_ROUTES
    assert guarded.control.calls == []


def test_every_route_with_data_refuses_an_unknown_token(guarded: Guarded) -> None:
    answered = {route for route in routes_of(guarded.app) if guarded.request(route, "x.y").status_code != 401}
    assert answered == OPEN_ROUTES


@pytest.mark.parametrize(
    ("scope", "closed"),
    [
        (Scope.USE, ALL_ROUTES - OPEN_ROUTES - TENANTS_ROUTES),
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
    answers = {client.request(route[0], filled(route[1]), content=_BODIES.get(route)) for route in routes_of(app)}
    assert {answer.status_code for answer in answers} == {200, 202}


@pytest.mark.parametrize("host", ["localhost", "localhost:7424", "127.0.0.1:7424", "127.1.2.3", "[::1]", "[::1]:7424"])
def test_a_local_server_answers_to_the_names_of_this_machine(host: str) -> None:
    answer = Client(unchanged(is_local=True)).request("GET", "/v1/stats", {"host": host})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "host", ["", "fusewire", "evil.example:7424", "localhost.evil.example", "10.0.0.1", "a b", "]:"]
)
def test_a_local_server_refuses_another_name(host: str) -> None:
    app = unchanged(is_local=True)
    for method, path in routes_of(app):
        refused = Client(app).request(method, path, {"host": host})
        assert (refused.status_code, refused.json()["type"].removeprefix("urn:fusewire:problem:")) == (
            421,
            "wrong_host",
        )


def test_a_server_for_other_machines_answers_to_any_name() -> None:
    assert Client(application()).request("GET", "/v1/stats", {"host": "gpu.example"}).status_code == 200


def test_a_refusal_is_typed_and_asks_for_a_bearer_token(guarded: Guarded) -> None:
    refused = guarded.request(("GET", "/v1/stats"))
    assert refused.json()["type"].removeprefix("urn:fusewire:problem:") == "unauthenticated"
    assert refused.headers["www-authenticate"] == "Bearer"


def test_a_verbose_readiness_needs_a_token(guarded: Guarded) -> None:
    assert guarded.request(("GET", "/readyz?verbose")).status_code == 401
    answer = guarded.request(("GET", "/readyz?verbose"), guarded.tokens[Scope.INSPECT])
    assert (answer.status_code, answer.json()["is_ready"], answer.json()["device"]) == (200, True, "2 cores")


def test_tenants_are_told_with_the_sums_of_their_sessions(client: Client) -> None:
    answer = client.get("/v1/tenants").json()["tenants"]
    sessions = client.get("/v1/sessions").json()["sessions"]
    assert [each["tenant"] for each in answer] == sorted({session["tenant"] for session in sessions})
    for each in answer:
        own = [session for session in sessions if session["tenant"] == each["tenant"]]
        assert each["sessions"] == len(own)
        assert each["live_bytes"] == sum(session["live_bytes"] for session in own)


def test_settings_are_told_with_their_origins() -> None:
    settings = {"limits.sessions": SettingView(value=8, origin="flag --sessions")}
    app = create_app(FixedSnapshots(), None, RememberingControl(), settings=settings)
    assert Client(app).get("/v1/config").json() == {
        "settings": {"limits.sessions": {"value": 8, "origin": "flag --sessions"}}
    }


def test_a_refusal_is_a_problem_of_rfc_9457(client: Client) -> None:
    refused = client.get("/v1/programs/none")
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json() == {
        "type": "urn:fusewire:problem:unknown_program",
        "title": "unknown program",
        "status": 404,
        "detail": "there is no program 'none'; /v1/programs lists those that there are",
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


@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("path", sorted({path for method, path in ALL_ROUTES if method == "GET"} | {"/readyz?verbose"}))
def test_every_answer_says_how_old_it_is(path: str, is_busy: bool) -> None:
    answer = Client(unchanged(is_busy=is_busy)).get(filled(path))
    is_last_seen = is_busy and path.startswith("/readyz")
    assert (0 <= float(answer.headers["snapshot-age-ms"]) < 100) is not is_last_seen


def test_the_age_of_the_last_snapshot_counts_from_when_it_was_taken() -> None:
    taken_at_ns = time.monotonic_ns() - 5_000_000_000
    busy = Client(application(snapshot=dataclasses.replace(SNAPSHOT, taken_at_ns=taken_at_ns), is_busy=True))
    for path in ("/readyz", "/readyz?verbose"):
        assert 5_000 <= float(busy.get(path).headers["snapshot-age-ms"]) < 60_000


def test_a_refusal_says_how_old_it_is(client: Client) -> None:
    for path in ("/v1/sessions/nobody", "/v1/nothing"):
        assert 0 <= float(client.get(path).headers["snapshot-age-ms"]) < 100


def test_a_server_that_is_too_busy_to_be_asked_says_so_and_is_alive() -> None:
    busy = Client(application(is_busy=True))
    refused = busy.get("/v1/stats")
    assert (refused.status_code, refused.json()["type"].removeprefix("urn:fusewire:problem:")) == (503, "busy")
    assert busy.get("/livez").text == "alive"
    assert busy.get("/readyz").text == "ready"


def test_liveness_is_one_word(client: Client) -> None:
    assert client.get("/livez").text == "alive"


@pytest.mark.parametrize(
    ("is_ready", "is_draining", "status", "word"),
    [(True, False, 200, "ready"), (False, False, 503, "unready"), (True, True, 503, "draining")],
)
def test_readiness_is_one_word_and_a_status(is_ready: bool, is_draining: bool, status: int, word: str) -> None:
    stats = dataclasses.replace(STATS, is_ready=is_ready, is_draining=is_draining)
    client = Client(application(snapshot=Snapshot(stats)))
    answer = client.get("/readyz")
    assert (answer.status_code, answer.text) == (status, word)
    verbose = client.get("/readyz?verbose")
    assert (verbose.status_code, verbose.json()["is_draining"]) == (status, is_draining)


def test_a_held_server_is_not_ready_and_a_troubled_one_serves() -> None:
    held = Client(application(snapshot=Snapshot(dataclasses.replace(STATS, is_held=True)))).get("/readyz")
    assert (held.status_code, held.text) == (503, "held")
    troubled = Client(application(snapshot=Snapshot(dataclasses.replace(STATS, trouble="a full disk"))))
    assert (troubled.get("/readyz").status_code, troubled.get("/readyz").text) == (200, "ready")
    assert troubled.get("/readyz?verbose").json()["trouble"] == "a full disk"


def test_a_ready_server_tells_for_which_kernels_rows_wait_and_why() -> None:
    client = Client(application(snapshot=Snapshot(dataclasses.replace(STATS, kernel_waits=KERNEL_WAITS))))
    verbose = client.get("/readyz?verbose")
    assert (verbose.status_code, verbose.json()["is_ready"]) == (200, True)
    assert verbose.json()["kernel_waits"] == json.loads(json.dumps(dataclasses.asdict(KERNEL_WAITS)))


def test_each_request_sees_the_latest_snapshot() -> None:
    snapshots = FixedSnapshots()
    client = Client(create_app(snapshots, None, RememberingControl()))
    assert len(client.get("/v1/sessions").json()["sessions"]) == 1
    snapshots.snapshot = Snapshot(STATS)
    assert client.get("/v1/sessions").json() == {"sessions": [], "next": None}


def test_statistics_are_the_published_ones(client: Client) -> None:
    assert client.get("/v1/stats").json() == json.loads(json.dumps(dataclasses.asdict(STATS)))


def test_a_session_is_found_by_its_shown_id(client: Client) -> None:
    assert client.get("/v1/sessions/0123456789ab").json() == client.get("/v1/sessions").json()["sessions"][0]


def test_programs_are_listed_without_their_sources(client: Client) -> None:
    listed = client.get("/v1/programs").json()["programs"]
    assert [(program["digest"], program["tier"], program["hits"]) for program in listed] == [("aa", 1, 3), ("bb", 0, 3)]
    assert "void" not in str(listed)


def test_a_program_shows_its_groups_records_and_source(client: Client) -> None:
    compiled = client.get("/v1/programs/aa").json()["compiled"]
    assert compiled["groups"] == [{"kernel": "k_add", "sizes": [64], "instances": 2, "values": []}]
    assert [(each["name"], each["form"], each["groups"]) for each in compiled["ops"]] == [
        ("add", "kernels", [0]),
        ("sum", "kernels", [1]),
        ("exp", "dead", []),
    ]
    (pair,) = compiled["unfused"]
    assert pair == {"consumer": 1, "producer": 0, "reason": "other_points"}
    assert compiled["reasons"][pair["reason"]] == "the two are computed at different points"
    assert compiled["sources"] == [{"kernel": "k_add", "text": "void k_add(void) {}", "lines": []}]


def test_a_program_that_runs_op_by_op_has_no_plan_to_show(client: Client) -> None:
    assert client.get("/v1/programs/bb").json()["compiled"] is None


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/v1/sessions/nobody", 404, "unknown_session"),
        ("GET", "/v1/programs/cc", 404, "unknown_program"),
        ("GET", "/v1/programs/%00%ff", 404, "unknown_program"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/sessions/nobody/arrays", 404, "unknown_session"),
        ("DELETE", "/v1/sessions/nobody", 404, "unknown_session"),
        ("GET", "/redoc", 404, "not_found"),
        ("GET", "/openapi.json", 404, "not_found"),
        ("DELETE", "/v1/stats", 405, "method_not_allowed"),
        ("GET", "/v1/device/hold", 405, "method_not_allowed"),
    ],
)
def test_what_is_not_there_is_a_typed_error(client: Client, method: str, path: str, status: int, error: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.json()["type"].removeprefix("urn:fusewire:problem:")) == (status, error)


def test_an_unknown_route_is_told_where_routes_are_described(client: Client) -> None:
    answer = client.get("/v1/nothing").json()["detail"]
    assert answer == "there is no route of this path; /docs and /v1/openapi.json describe all routes"


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/log", "GET, HEAD, PUT"),
        ("/v1/sessions/0123456789ab", "DELETE, GET, HEAD"),
        ("/v1/drain", "POST"),
        ("/livez", "GET, HEAD"),
        ("/docs", "GET, HEAD"),
        ("/v1/openapi.json", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_which_methods_the_route_takes(client: Client, path: str, methods: str) -> None:
    refused = client.request("PATCH", path)
    assert (refused.status_code, refused.headers["allow"]) == (405, methods)
    expected = f"the path takes {methods} and not PATCH; /docs and /v1/openapi.json describe all routes"
    assert refused.json()["detail"] == expected


def test_an_operator_holds_and_releases_the_device() -> None:
    control = RememberingControl()
    client = Client(application(control=control))
    assert client.post("/v1/device/hold").json() == {"is_held": True}
    assert client.post("/v1/device/release").json() == {"is_held": False}
    assert control.calls == ["hold", "release"]


def test_a_page_in_a_browser_cannot_hold_the_device() -> None:
    control = RememberingControl()
    client = Client(application(control=control))
    answer = client.post("/v1/device/hold", headers={"origin": "https://pages.example.org"})
    assert (answer.status_code, answer.json()["type"].removeprefix("urn:fusewire:problem:"), control.calls) == (
        403,
        "cross_site",
        [],
    )


@pytest.mark.parametrize(
    ("scope", "headers", "status"),
    [
        (Scope.ADMIN, {"origin": "http://fusewire", "sec-fetch-site": "same-origin"}, 200),
        (Scope.INSPECT, {"origin": "http://fusewire", "sec-fetch-site": "same-origin"}, 403),
        (Scope.USE, {"origin": "http://fusewire"}, 403),
        (None, {"origin": "http://fusewire"}, 403),
        (Scope.ADMIN, {"origin": "http://evil.example"}, 403),
        (Scope.ADMIN, {"origin": "null"}, 403),
        (Scope.ADMIN, {"origin": "http://fusewire", "sec-fetch-site": "cross-site"}, 403),
        (Scope.ADMIN, {"sec-fetch-site": "same-site"}, 403),
    ],
)
def test_our_own_page_operates_by_a_token_that_allows_it(
    guarded: Guarded, scope: Scope | None, headers: dict[str, str], status: int
) -> None:
    bearer = {} if scope is None else {"authorization": f"Bearer {guarded.tokens[scope]}"}
    for path in ("/v1/device/hold", "/v1/device/release"):
        assert guarded.client.post(path, headers={**headers, **bearer}).status_code == status
    assert len(guarded.control.calls) == (2 if status == 200 else 0)


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer x"}])
def test_no_page_operates_a_server_without_tokens(headers: dict[str, str]) -> None:
    control = RememberingControl()
    answer = Client(application(control=control)).post("/v1/drain", headers={"origin": "http://fusewire", **headers})
    assert (answer.status_code, control.calls) == (403, [])


def test_a_revoked_token_is_refused_at_the_next_request(guarded: Guarded) -> None:
    token = guarded.tokens[Scope.INSPECT]
    assert guarded.request(("GET", "/v1/stats"), token).status_code == 200
    revoke(guarded.token_file, token.partition(".")[0])
    assert guarded.request(("GET", "/v1/stats"), token).status_code == 401


def test_the_description_of_the_api_covers_every_route_that_has_data(client: Client) -> None:
    described = client.get("/v1/openapi.json").json()["paths"]
    assert {(method.upper(), path) for path, methods in described.items() for method in methods} == ALL_ROUTES - {
        ("GET", "/v1/openapi.json"),
        ("GET", "/docs"),
        *PAGE_ROUTES,
    }


def test_a_route_that_is_added_later_is_closed_too(guarded: Guarded) -> None:
    @guarded.app.get("/v1/later")
    async def later() -> str:
        return "open"

    assert guarded.request(("GET", "/v1/later")).status_code == 401


def test_the_body_of_a_stranger_is_not_read(guarded: Guarded) -> None:
    refused = guarded.client.request("PUT", "/v1/log", content=b"no JSON")
    assert (refused.status_code, guarded.control.calls) == (401, [])


def test_a_path_that_an_operator_calls_is_one_line_of_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "fusewire.audit"):
        Client(application()).request("DELETE", "/v1/sessions/a%0Ab")
    (logged,) = [record.getMessage() for record in caplog.records if record.name == "fusewire.audit"]
    assert logged == "an operator calls DELETE /v1/sessions/a%0Ab"


def test_refused_requests_are_in_the_audit_log_and_their_tokens_are_not(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    local = Client(application(is_local=True))
    with caplog.at_level("INFO", "fusewire.audit"):
        guarded.request(("GET", "/v1/stats"), "wrong.token")
        guarded.request(("POST", "/v1/drain"), guarded.tokens[Scope.INSPECT])
        local.request("POST", "/v1/device/hold", {"host": "localhost", "origin": "https://pages.example.org"})
        local.request("GET", "/v1/programs/a%0Ab", {"host": "evil.example"})
    logged = [record.__dict__ for record in caplog.records if record.name == "fusewire.audit"]
    assert [(one["levelname"], one["case"], one["method"], one["path"]) for one in logged] == [
        ("WARNING", "unauthenticated", "GET", "/v1/stats"),
        ("WARNING", "insufficient_scope", "POST", "/v1/drain"),
        ("WARNING", "cross_site", "POST", "/v1/device/hold"),
        ("WARNING", "wrong_host", "GET", "/v1/programs/a%0Ab"),
    ]
    assert all(one["message"].startswith("a request was refused: ") and one["peer"] for one in logged)
    assert not any(token in str(logged) for token in ("wrong.token", *guarded.tokens.values()))


def test_what_a_stranger_chooses_takes_little_room_in_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "fusewire.audit"):
        Client(application(is_local=True)).request("GET", "/v1/stats", {"host": "a" * 10_000})
    (logged,) = [record for record in caplog.records if record.name == "fusewire.audit"]
    assert logged.__dict__["case"] == "wrong_host"
    assert len(str(logged.__dict__)) < 2_000


def test_a_path_with_a_slash_too_many_is_not_redirected_to_where_the_host_header_says(client: Client) -> None:
    refused = client.request("GET", "/v1/stats/", {"host": "elsewhere.example"})
    assert (refused.status_code, refused.json()["title"]) == (404, "not found")
