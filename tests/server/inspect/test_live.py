"""What those who watch are sent: what is in it, who may see it, and who is refused."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from fusewire_server.access.tokens import Authenticator, Scope, mint, revoke
from fusewire_server.inspect import watching
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.launches.columns import Rows, rows_of
from fusewire_server.inspect.snapshots.session_view import SessionView
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from tests.patience import HANGS_S
from tests.server.inspect.examples import SESSION, SNAPSHOT, Client, FixedSnapshots, RememberingControl

_THEIRS = SessionView(**{**SESSION.__dict__, "session": "ffffffffffff", "tenant": "others", "name": "theirs"})
_BOTH = Snapshot(SNAPSHOT.stats, (SESSION, _THEIRS), SNAPSHOT.programs)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "TICK_S", 0.001)


def application(tokens: Path | None = None) -> FastAPI:
    authenticator = Authenticator(tokens) if tokens else None
    return create_app(FixedSnapshots(_BOTH), authenticator, RememberingControl())


class Watcher:
    """Reads the stream of an application without a socket."""

    def __init__(self, app: FastAPI, path: str = "/v1/live?pixel_ns=0", **headers: str) -> None:
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue(maxsize=1)
        self._gone = asyncio.Event()
        self.is_stream = False
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("fusewire", 80),
            "http_version": "1.1",
            "scheme": "http",
            "fusewire.streams": self._become_stream,
        }
        self._task = asyncio.create_task(app(scope, self._receive, self._sent.put))  # type: ignore[arg-type]

    def _become_stream(self) -> None:
        self.is_stream = True

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def status(self) -> int:
        started = await asyncio.wait_for(self._sent.get(), HANGS_S)
        return int(started["status"])

    async def message(self) -> tuple[dict[str, Any], Rows] | None:
        """The next message, or None at the end of the stream."""
        body = (await asyncio.wait_for(self._sent.get(), HANGS_S)).get("body", b"")
        if not body:
            return None
        states_bytes, records = struct.unpack("<II", body[:8])
        assert len(body) == 8 + states_bytes + records
        return json.loads(body[8 : 8 + states_bytes]), rows_of(body[8 + states_bytes :])

    async def leave(self) -> None:
        self._gone.set()
        while not self._task.done():
            await asyncio.wait({self._task}, timeout=0.01)
            while not self._sent.empty():
                self._sent.get_nowait()


def watch(path: str = "/v1/live?pixel_ns=0", *, app: FastAPI | None = None, headers: Mapping[str, str] = {}) -> Any:
    """The first message of a stream, or the status of the refusal."""

    async def test() -> Any:
        watcher = Watcher(app or application(), path, host="fusewire", **headers)
        status = await watcher.status()
        first = await watcher.message() if status == 200 else None
        await watcher.leave()
        return first if status == 200 else status

    return asyncio.run(test())


def test_a_message_has_the_state_as_rest_tells_it_and_the_records() -> None:
    app = application()
    state, rows = watch(app=app)
    rest = Client(app)
    of_the_queue = {"queued_rows", "next_program"}
    answer = rest.get("/v1/sessions").json()["sessions"]
    assert state["sessions"] == [{name: one[name] for name in one.keys() - of_the_queue} for one in answer]
    assert state["programs"] == rest.get("/v1/programs").json()["programs"]
    stats = rest.get("/v1/stats").json()
    for name in ("memory", "rows_per_launch", "sessions", "backend"):
        assert state["stats"][name] == stats[name]
    assert state["stats"]["totals"].items() <= stats["totals"].items()
    (names,) = state["names"]
    assert names["programs"] == {"1": ["aa", 400.0, 300.0], "2": ["bb", 100.0, 1900.0]}
    assert names["sessions"]["0"] == ["0123456789ab", "ppo-worker-7", "lab"]
    assert rows["ended_ns"].tolist() == [2_000, 3_000, 5_000]


@pytest.mark.parametrize(("scope", "may"), [(Scope.USE, False), (Scope.INSPECT, False), (Scope.ADMIN, True)])
def test_a_watcher_is_told_whether_its_token_may_operate(tmp_path: Path, scope: Scope, may: bool) -> None:
    token = mint(tmp_path / "tokens", tenant="lab", scope=scope)
    state, _ = watch(app=application(tmp_path / "tokens"), headers={"authorization": f"Bearer {token}"})
    assert state["may_operate"] == may


def test_without_pixels_no_records_are_sent() -> None:
    _, rows = watch("/v1/live")
    assert len(rows) == 0


def test_records_are_reduced_for_the_pixels_that_are_asked_for() -> None:
    _, rows = watch("/v1/live?pixel_ns=1000000")
    assert rows["count"].tolist() == [2, 1]


def test_names_and_records_are_sent_once() -> None:
    async def test() -> None:
        watcher = Watcher(application(), host="fusewire")
        assert await watcher.status() == 200
        first, second = await watcher.message(), await watcher.message()
        assert first is not None
        assert second is not None
        assert (second[0]["names"][0]["programs"], second[0]["names"][0]["sessions"], len(second[1])) == ({}, {}, 0)
        assert watcher.is_stream
        await watcher.leave()

    asyncio.run(test())


def test_a_tenant_sees_its_own_sessions_and_programs_and_others_as_counts(tmp_path: Path) -> None:
    token = mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE)
    state, rows = watch(app=application(tmp_path / "tokens"), headers={"authorization": f"Bearer {token}"})
    assert [each["session"] for each in state["sessions"]] == ["0123456789ab"]
    assert (state["other_sessions"], state["stats"]["sessions"]) == (1, 1)
    assert [each["digest"] for each in state["programs"]] == ["aa"]
    assert [*state["names"][0]["programs"]] == ["1"]
    assert [*state["names"][0]["sessions"]] == ["0"]
    assert rows["low"].tolist() == [1, 1, 0]
    assert rows["program"].tolist() == [1, 1, 0]
    assert "theirs" not in json.dumps(state)
    assert "bb" not in json.dumps(state["programs"])


def test_a_tenant_sees_the_company_of_its_own_sessions_only(tmp_path: Path) -> None:
    token = mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE)
    client, bearer = Client(application(tmp_path / "tokens")), {"authorization": f"Bearer {token}"}
    mine = client.request("GET", "/v1/sessions/0123456789ab/company", bearer).json()
    assert (mine["companions"], mine["other_companions"], mine["submissions"]) == ([], 1, 2)
    assert client.request("GET", "/v1/sessions/ffffffffffff/company", bearer).status_code == 404
    assert client.request("GET", "/v1/programs/bb", bearer).status_code == 404
    assert client.request("GET", "/v1/programs/aa", bearer).status_code == 200


@pytest.mark.parametrize(("scope", "alike"), [(Scope.USE, []), (Scope.INSPECT, ["bb"])])
def test_programs_of_the_same_ops_are_told_to_whom_may_see_them(tmp_path: Path, scope: Scope, alike: list[str]) -> None:
    token = mint(tmp_path / "tokens", tenant="lab", scope=scope)
    programs = tuple([replace(each, program=replace(each.program, structure="s")) for each in SNAPSHOT.programs])
    snapshots = FixedSnapshots(replace(_BOTH, programs=programs))
    app = create_app(snapshots, Authenticator(tmp_path / "tokens"), RememberingControl())
    answer = Client(app).request("GET", "/v1/programs/aa", {"authorization": f"Bearer {token}"}).json()
    assert [each["digest"] for each in answer["alike"]] == alike


def test_company_names_those_who_share_the_launches() -> None:
    answer = Client(application()).get("/v1/sessions/0123456789ab/company").json()
    assert answer["companions"] == [{"session": "ffffffffffff", "name": "theirs", "tenant": "others", "submissions": 2}]
    assert (answer["shared_submissions"], answer["saved_ns"], answer["longer_ns"]) == (2, 400, 600)


def test_a_revoked_token_ends_the_stream(tmp_path: Path) -> None:
    token = mint(tmp_path / "tokens", tenant="lab", scope=Scope.INSPECT)

    async def test() -> None:
        watcher = Watcher(application(tmp_path / "tokens"), host="fusewire", authorization=f"Bearer {token}")
        assert await watcher.status() == 200
        assert await watcher.message() is not None
        revoke(tmp_path / "tokens", token.partition(".")[0])
        while await watcher.message() is not None:
            pass
        await watcher.leave()

    asyncio.run(test())


def test_there_are_sixteen_places_and_one_who_leaves_makes_room() -> None:
    async def test() -> None:
        app = application()
        watchers = [Watcher(app, host="fusewire") for _ in range(16)]
        assert {await each.status() for each in watchers} == {200}
        late = Watcher(app, host="fusewire")
        assert await late.status() == 503
        await watchers[0].leave()
        follower = Watcher(app, host="fusewire")
        assert await follower.status() == 200
        for each in (*watchers[1:], late, follower):
            await each.leave()

    asyncio.run(test())


def test_watchers_share_one_look_a_tick_and_without_them_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    fresh = FixedSnapshots.fresh

    async def counted(self: FixedSnapshots) -> Snapshot:
        nonlocal taken
        taken += 1
        return await fresh(self)

    monkeypatch.setattr(FixedSnapshots, "fresh", counted)

    async def test() -> None:
        app = application()
        watchers = [Watcher(app, host="fusewire") for _ in range(8)]
        for each in watchers:
            assert await each.status() == 200
            assert await each.message() is not None
        looks = taken
        assert looks < 8
        for each in watchers:
            await each.leave()
        looks = taken
        await asyncio.wait_for(asyncio.to_thread(lambda: None), HANGS_S)
        assert taken == looks

    asyncio.run(test())


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_a_page_of_another_site_gets_no_stream(headers: dict[str, str]) -> None:
    assert watch(headers=headers) == 403


@pytest.mark.parametrize("headers", [{"origin": "http://fusewire"}, {"sec_fetch_site": "same-origin"}, {}])
def test_our_own_page_and_tools_get_one(headers: dict[str, str]) -> None:
    assert isinstance(watch(headers=headers), tuple)


@pytest.mark.parametrize("query", ["token=a.b", "pixel_ns=-1", "pixel_ns=a", "access_token=x&pixel_ns=0"])
def test_a_token_in_the_query_and_other_strange_parameters_are_refused(query: str) -> None:
    assert watch(f"/v1/live?{query}") == 422


def test_the_page_may_load_and_reach_nothing_but_this_server() -> None:
    page = Client(application()).get("/ui/")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "<script>" not in page.text
    assert "style=" not in page.text


def test_the_page_has_its_files_and_no_others() -> None:
    client = Client(application())
    for name in ("main.js", "style.css", "views/now.js", "uplot/uPlot.js", "uplot/uPlot.LICENSE.txt", "icon.svg"):
        assert client.get(f"/ui/{name}").status_code == 200
    for name in ("..%2fdocs.html", "views/../../docs.html", "views/", "none.js", "__init__.py"):
        assert client.get(f"/ui/{name}").status_code == 404
    assert client.get("/ui/?token=a.b").status_code == 422


def test_a_browser_is_led_to_the_page_and_others_get_words() -> None:
    client = Client(application())
    led = client.request("GET", "/", {"accept": "text/html,*/*;q=0.8", "host": "evil.example"})
    assert (led.status_code, led.headers["location"]) == (307, "/ui/")
    assert client.get("/").text.startswith("This is the inspection")
