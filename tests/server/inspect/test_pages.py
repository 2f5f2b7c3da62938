"""Pages of long lists, and ETags."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.pages import page_of
from fusewire_server.inspect.requests.problems import Refused
from fusewire_server.inspect.snapshots.program_view import ProgramView
from tests.server.inspect.examples import PLANNED, SNAPSHOT, Client, FixedSnapshots, RememberingControl


@pytest.fixture
def client() -> Client:
    return Client(create_app(FixedSnapshots(), None, RememberingControl()))


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10])
def test_pages_together_are_the_list(limit: int) -> None:
    found: list[str] = []
    after = None
    for _ in range(10):
        page, after = page_of("abcdefg", str, after, limit)
        assert len(page) <= limit
        found += page
        if after is None:
            break
    assert "".join(found) == "abcdefg"


def test_an_empty_list_is_one_empty_page() -> None:
    assert page_of("", str, None, 5) == ((), None)


def test_a_cursor_goes_on_although_its_entry_is_gone() -> None:
    first, after = page_of("abcde", str, None, 2)
    assert (first, after) == (("a", "b"), '[0, "b"]')
    assert page_of("acde", str, after, 2) == (("c", "d"), '[0, "d"]')


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4), st.booleans())
def test_pages_in_the_order_of_a_figure_together_are_the_list(hits: list[int], limit: int, descends: bool) -> None:
    programs = [replace(PLANNED.program, digest=f"{place:02}", hits=each) for place, each in enumerate(hits)]
    found: list[ProgramView] = []
    after = None
    while len(found) < len(programs) or not programs:
        page, after = page_of(programs, lambda each: each.digest, after, limit, "-hits" if descends else "hits")
        found += page
        if after is None:
            break
    assert found == sorted(programs, key=lambda each: (each.hits, each.digest), reverse=descends)


@pytest.mark.parametrize("after", ["x", "1", "[1]", "{}", '[[], "a"]', '["text", "a"]', "[null, 1]", "[" * 100])
def test_what_is_no_cursor_is_refused(after: str) -> None:
    with pytest.raises(Refused, match=r"^404: .*begin without"):
        page_of([PLANNED.program], lambda each: each.digest, after, 5, "hits")


@pytest.mark.parametrize("sort", ["colour", "rows_per_launch", "__class__", "--hits"])
def test_only_figures_sort(client: Client, sort: str) -> None:
    answer = client.get(f"/v1/programs?sort={sort}")
    assert (answer.status_code, answer.json()["title"]) == (422, "bad parameter")


def test_lists_are_filtered(client: Client) -> None:
    assert len(client.get("/v1/sessions?tenant=lab&state=open").json()["sessions"]) == 1
    assert client.get("/v1/sessions?tenant=other").json()["sessions"] == []
    assert client.get("/v1/sessions?state=detached").json()["sessions"] == []
    assert len(client.get("/v1/sessions?name=ppo-worker-7&label=run%3D42").json()["sessions"]) == 1
    assert client.get("/v1/sessions?label=run%3D4").json()["sessions"] == []
    assert client.get("/v1/sessions?name=other").json()["sessions"] == []
    assert client.get("/v1/tenants?tenant=other").json()["tenants"] == []
    assert client.get("/v1/ended_sessions?tenant=other").json()["sessions"] == []
    assert [each["digest"] for each in client.get("/v1/programs?tier=1").json()["programs"]] == ["aa"]
    assert [each["digest"] for each in client.get("/v1/programs?sort=-tier").json()["programs"]] == ["aa", "bb"]


@pytest.mark.parametrize(
    "path", ["/v1/sessions?limt=3", "/v1/stats?x=1", "/livez?x", "/v1/programs/aa?sort=hits", "/docs?a"]
)
def test_a_parameter_that_a_route_does_not_have_is_a_problem(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["title"]) == (422, "unknown parameter")
    assert "the route has no parameter" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/sessions?limit=3&limit=4", "/v1/live?pixel_ns=true&pixel_ns=0"])
def test_a_parameter_that_stands_twice_is_a_problem(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["title"]) == (422, "repeated parameter")
    assert "is given more than once" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/", "/livez", "/v1/stats", "/v1/programs/aa", "/metrics", "/v1/none"])
def test_head_answers_as_get_without_the_body(client: Client, path: str) -> None:
    get, head = client.get(path), client.request("HEAD", path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    assert path == "/metrics" or head.headers["content-length"] == get.headers["content-length"]


def test_the_root_tells_where_to_go(client: Client) -> None:
    answer = client.get("/")
    assert answer.status_code == 200
    for path in ("/docs", "/readyz?verbose", "/v1/stats", "/v1/sessions", "/metrics"):
        assert path in answer.text
        assert client.get(path).status_code == 200


def test_programs_come_in_pages(client: Client) -> None:
    first = client.get("/v1/programs?limit=1").json()
    assert [program["digest"] for program in first["programs"]] == ["aa"]
    second = client.get(f"/v1/programs?limit=1&after={quote(first['next'])}").json()
    assert [program["digest"] for program in second["programs"]] == ["bb"]
    assert second["next"] is None
    assert len(SNAPSHOT.programs) == 2


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "limit=-1", f"after={'a' * 201}"])
def test_a_parameter_out_of_range_is_a_problem(client: Client, query: str) -> None:
    answer = client.get(f"/v1/sessions?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert query.partition("=")[0] in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/programs/aa", "/v1/programs/aa?format=text", "/v1/config", "/v1/openapi.json"])
def test_an_answer_that_has_not_changed_is_not_sent_again(client: Client, path: str) -> None:
    first = client.get(path)
    again = client.request("GET", path, {"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = client.request("GET", path, {"if-none-match": '"other"'})
    assert (other.status_code, other.content) == (200, first.content)
