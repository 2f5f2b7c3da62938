"""Sessions, their arrays, their end, and tenants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fusewire_server.inspect.routes.application import create_app
from fusewire_server.inspect.snapshot import Snapshot
from tests.server.inspect.examples import SESSION, STATS, Client, FixedSnapshots, RememberingControl, sources
from tests.server.inspect.routes.applications import application, kind_of


def test_each_request_sees_the_latest_snapshot() -> None:
    snapshots = FixedSnapshots()
    client = Client(create_app(sources(snapshots), None))
    assert len(client.get("/v1/sessions").json()["sessions"]) == 1
    snapshots.snapshot = Snapshot(STATS)
    assert client.get("/v1/sessions").json() == {"sessions": [], "next": None}


def test_a_session_is_found_by_its_shown_id(client: Client) -> None:
    assert client.get("/v1/sessions/0123456789ab").json() == client.get("/v1/sessions").json()["sessions"][0]


def test_tenants_are_told_with_the_sums_of_their_sessions(client: Client) -> None:
    told = client.get("/v1/tenants").json()["tenants"]
    sessions = client.get("/v1/sessions").json()["sessions"]
    assert [each["tenant"] for each in told] == sorted({session["tenant"] for session in sessions})
    for each in told:
        own = [session for session in sessions if session["tenant"] == each["tenant"]]
        assert each["sessions"] == len(own)
        assert each["live_bytes"] == sum(session["live_bytes"] for session in own)


def test_sessions_come_in_pages(client: Client) -> None:
    views = tuple(replace(SESSION, session=f"{number:012x}", tenant=f"t{number}") for number in (3, 1, 2))
    client = Client(application(snapshot=Snapshot(STATS, views)))
    first = client.get("/v1/sessions?limit=2").json()
    assert ([view["session"][-1] for view in first["sessions"]], first["next"]) == (["1", "2"], "000000000002")
    second = client.get(f"/v1/sessions?limit=2&after={first['next']}").json()
    assert ([view["session"][-1] for view in second["sessions"]], second["next"]) == (["3"], None)
    assert [view["tenant"] for view in client.get("/v1/tenants?after=t1").json()["tenants"]] == ["t2", "t3"]


def test_arrays_are_told_without_values(client: Client) -> None:
    (array,) = client.get(f"/v1/sessions/{SESSION.session}/arrays").json()["arrays"]
    assert array.keys() == {"handle", "dtype", "shape", "bytes", "age_s", "base", "op", "state"}


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "after=-1", f"after={2**63}", "after=1e3"])
def test_a_page_of_arrays_out_of_range_is_refused(client: Client, query: str) -> None:
    refused = client.get(f"/v1/sessions/{SESSION.session}/arrays?{query}")
    assert (refused.status_code, kind_of(refused)) == (422, "bad_parameter")
    assert query.partition("=")[0] in refused.json()["detail"]


def test_an_operator_ends_a_session() -> None:
    control = RememberingControl()
    client = Client(application(control=control))
    ending = client.request("DELETE", f"/v1/sessions/{SESSION.session}")
    assert (ending.status_code, ending.json()) == (202, {"session": SESSION.session, "is_ending": True})
    assert control.told == [f"end {SESSION.session}"]


@pytest.mark.parametrize(("method", "path"), [("DELETE", ""), ("GET", "/arrays"), ("GET", "")])
def test_an_unknown_session_is_refused(method: str, path: str) -> None:
    control = RememberingControl()
    refused = Client(application(control=control)).request(method, f"/v1/sessions/nobody{path}")
    assert (refused.status_code, kind_of(refused), control.told) == (404, "unknown_session", [])
