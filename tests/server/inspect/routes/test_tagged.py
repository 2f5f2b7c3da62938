"""Answers with an entity tag."""

from __future__ import annotations

import pytest
from fastapi import Request

from fusewire_server.inspect.routes.tagged import tagged


def asking(known: str | None) -> Request:
    headers = [] if known is None else [(b"if-none-match", known.encode())]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": headers})


def tag_of(content: bytes) -> str:
    return tagged(asking(None), content, "text/plain").headers["etag"]


def test_equal_contents_have_equal_tags_and_others_have_others() -> None:
    assert tag_of(b"one") == tag_of(b"one") != tag_of(b"other")


@pytest.mark.parametrize("known", ["{}", "W/{}", '"other", {}', "*"])
def test_who_knows_the_content_gets_its_tag_only(known: str) -> None:
    answer = tagged(asking(known.format(tag_of(b"one"))), b"one", "text/plain", {"age": "1"})
    assert (answer.status_code, answer.body) == (304, b"")
    assert (answer.headers["etag"], answer.headers["age"]) == (tag_of(b"one"), "1")


@pytest.mark.parametrize("known", [None, "", '"other"', "one"])
def test_who_does_not_know_the_content_gets_it(known: str | None) -> None:
    answer = tagged(asking(known), b"one", "text/plain")
    assert (answer.status_code, answer.body) == (200, b"one")
