"""The routes of the application."""

from __future__ import annotations

from tests.server.inspect.examples import Client
from tests.server.inspect.routes.applications import ALL_ROUTES, application, routes_of


def test_the_application_has_these_routes_and_no_other() -> None:
    assert routes_of(application()) == ALL_ROUTES


def test_an_answer_says_how_old_it_is(client: Client) -> None:
    for path in ("/v1/stats", "/v1/sessions", "/v1/programs"):
        assert 0 <= float(client.get(path).headers["snapshot-age-ms"]) < 100
