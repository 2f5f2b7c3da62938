"""The page that shows the routes: it runs its own script only, and holds no data."""

from __future__ import annotations

import base64
import hashlib
import re

from tests.server.inspect.examples import Client
from tests.server.inspect.routes.applications import Guarded


def test_the_page_needs_no_token_and_what_it_shows_does(guarded: Guarded) -> None:
    page = guarded.request(("GET", "/docs"))
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert guarded.request(("GET", "/v1/openapi.json")).status_code == 401


def test_the_page_may_run_its_own_script_and_style_only(client: Client) -> None:
    page = client.get("/docs")
    policy = dict(rule.split(" ", 1) for rule in page.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert policy[f"{tag}-src"] == f"'sha256-{digest}'"
    assert page.headers["x-content-type-options"] == "nosniff"


def test_the_page_asks_nobody_else_and_keeps_nothing(client: Client) -> None:
    page = client.get("/docs").text
    assert not re.search(r"https?://|innerHTML|localStorage|sessionStorage|cookie| on\w+=| style=", page)


def test_the_description_that_is_known_is_not_sent_again(client: Client) -> None:
    tag = client.get("/v1/openapi.json").headers["etag"]
    assert client.request("GET", "/v1/openapi.json", {"if-none-match": tag}).status_code == 304
