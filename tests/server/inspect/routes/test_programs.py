"""Programs and their plans, as JSON and as text."""

from __future__ import annotations

from dataclasses import replace

from fusewire_server.inspect.program_text import program_text
from fusewire_server.inspect.snapshot import Snapshot, SourceView
from tests.server.inspect.examples import PLANNED, STATS, Client
from tests.server.inspect.routes.applications import application


def test_programs_are_listed_without_their_sources(client: Client) -> None:
    listed = client.get("/v1/programs").json()["programs"]
    assert [(program["digest"], program["tier"], program["hits"]) for program in listed] == [("aa", 1, 3), ("bb", 0, 3)]
    assert "void" not in str(listed)


def test_a_program_shows_its_groups_explanation_and_source(client: Client) -> None:
    compiled = client.get("/v1/programs/aa").json()["compiled"]
    assert compiled["groups"] == [{"kernel": "k_add", "sizes": [64], "instances": 2}]
    assert compiled["explanation"] == ["ops 0 to 4 run as one kernel"]
    assert compiled["sources"] == [{"kernel": "k_add", "text": "void k_add(void) {}"}]


def test_a_program_that_runs_op_by_op_has_no_plan_to_show(client: Client) -> None:
    assert client.get("/v1/programs/bb").json()["compiled"] is None


def test_programs_come_in_pages(client: Client) -> None:
    first = client.get("/v1/programs?limit=1").json()
    second = client.get(f"/v1/programs?limit=1&after={first['next']}").json()
    assert [page["programs"][0]["digest"] for page in (first, second)] == ["aa", "bb"]
    assert second["next"] is None


def test_a_program_is_told_as_text_for_people(client: Client) -> None:
    answer = client.get("/v1/programs/aa?format=text")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == program_text(PLANNED)
    assert 0 <= float(answer.headers["snapshot-age-ms"]) < 100


def test_an_unknown_format_is_refused(client: Client) -> None:
    assert client.get("/v1/programs/aa?format=xml").status_code == 422


def test_a_client_that_knows_a_program_gets_its_tag_only(client: Client) -> None:
    tag = client.get("/v1/programs/aa").headers["etag"]
    again = client.request("GET", "/v1/programs/aa", {"if-none-match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert client.get("/v1/programs/bb").headers["etag"] != tag


def test_a_long_plan_is_cut_and_says_so() -> None:
    assert PLANNED.compiled is not None
    long = replace(PLANNED, compiled=replace(PLANNED.compiled, sources=(SourceView("k", "x" * (2 << 20)),)))
    told = Client(application(snapshot=Snapshot(STATS, (), (long,)))).get("/v1/programs/aa")
    assert len(told.content) < 1 << 20
    assert told.json()["compiled"]["omitted"] == {"groups": 0, "explanation": 0, "sources": 1}
