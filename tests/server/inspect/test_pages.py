"""Pages of long lists, and ETags."""

from __future__ import annotations

import pytest

from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.pages import page_of
from fusewire_server.inspect.requests.problems import Refused
from tests.server.inspect.examples import SNAPSHOT, Client, FixedSnapshots, RememberingControl


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


def test_a_cursor_that_is_gone_is_refused() -> None:
    with pytest.raises(Refused, match="begin without"):
        page_of("abc", str, "x", 5)


def test_programs_come_in_pages(client: Client) -> None:
    first = client.get("/v1/programs?limit=1").json()
    assert [program["digest"] for program in first["programs"]] == ["aa"]
    second = client.get(f"/v1/programs?limit=1&after={first['next']}").json()
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
