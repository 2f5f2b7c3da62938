"""Divides long lists into pages, and tells by ETag that an answer has not changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from http import HTTPStatus
from itertools import dropwhile, islice
from typing import Annotated, TypeVar

from fastapi import Query, Request, Response
from pydantic import BaseModel

from fusewire_server.inspect.requests.problems import Refused
from fusewire_server.programs.counters import MOST_RECENT

_T = TypeVar("_T")

MOST_ON_A_PAGE = 1000
_LONGEST_CURSOR = 200

Limit = Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE, description="most entries of the page")]
Newest = Annotated[int, Query(ge=1, le=MOST_RECENT, description="most entries")]
After = Annotated[
    str | None, Query(max_length=_LONGEST_CURSOR, description="`next` of the page before; absent: the first page")
]


def page_of(
    entries: Iterable[_T], name_of: Callable[[_T], str], after: str | None, limit: int
) -> tuple[tuple[_T, ...], str | None]:
    """Returns the entries that follow the entry named `after`, at most `limit`, and the cursor of the next page.

    Refuses a cursor that names no entry, because the entry may have gone since: the reader begins anew.
    """
    rest = iter(entries)
    if after is not None:
        rest = dropwhile(lambda entry: name_of(entry) != after, rest)
        if next(rest, None) is None:
            raise Refused(HTTPStatus.NOT_FOUND, "unknown_cursor", f"no entry {after!r}; begin without `after`")
    found = tuple(islice(rest, limit + 1))
    return found[:limit], name_of(found[limit - 1]) if len(found) > limit else None


# What OpenAPI is to say of a route whose answers have an ETag, beside its refusals.
NOT_MODIFIED: dict[int | str, dict[str, object]] = {304: {"description": "Not Modified"}}


def with_etag(request: Request, model: BaseModel | str, media_type: str = "application/json") -> Response:
    """Returns the answer with its ETag, or 304 without a body if the request names this ETag."""
    body = (model if isinstance(model, str) else model.model_dump_json()).encode()
    etag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    known = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}
    if etag in known or "*" in known:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body, media_type=media_type, headers=headers)
