"""Divides long lists into pages, and tells by ETag that an answer has not changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from hashlib import blake2b
from heapq import nlargest, nsmallest
from http import HTTPStatus
from operator import itemgetter
from typing import Annotated, Any, TypeVar, get_type_hints

from fastapi import Query, Request, Response
from pydantic import BaseModel

from fusewire_server.inspect.requests.problems import Refused
from fusewire_server.programs.recent import MOST_RECENT

_T = TypeVar("_T")

MOST_ON_A_PAGE = 1000
_LONGEST_CURSOR = 200

Limit = Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE, description="most entries of the page")]


def sort_by(record: type) -> Any:
    """Returns the parameter that names the figure of a record to sort by."""
    names = [name for name, kind in get_type_hints(record).items() if kind in {int, float, str, bool}]
    text = "figure to sort by; with - before its name the greatest first; empty: by id"
    return Query(description=text, pattern=f"^(-?({'|'.join(names)}))?$")


Tenant = Annotated[str | None, Query(max_length=200, description="only those of this tenant")]
Newest = Annotated[int, Query(ge=1, le=MOST_RECENT, description="most entries")]
After = Annotated[
    str | None, Query(max_length=_LONGEST_CURSOR, description="`next` of the page before; absent: the first page")
]


def page_of(
    entries: Iterable[_T], id_of: Callable[[_T], str], after: str | None, limit: int, sort: str = ""
) -> tuple[tuple[_T, ...], str | None]:
    """Returns at most `limit` entries after the cursor `after`, and the cursor of the next page.

    They are sorted by the figure `sort`, with a minus before its name the greatest first; without it by their ids. A
    cursor holds what its entry was sorted by, so that it goes on at the same place although the entry may have gone.
    Refuses what is no cursor.
    """
    name, is_descending = sort.removeprefix("-"), sort.startswith("-")

    def key_of(entry: _T) -> tuple[Any, str]:
        return (getattr(entry, name) if name else 0, id_of(entry))

    keys = ((key_of(entry), entry) for entry in entries)
    if after is not None:
        begin = _cursor(after)
        keys = (each for each in keys if _is_after(each[0], begin, is_descending=is_descending))
    choose = nlargest if is_descending else nsmallest
    found = choose(limit + 1, keys, key=itemgetter(0))
    following = json.dumps(found[limit - 1][0]) if len(found) > limit else None
    return tuple([entry for _, entry in found[:limit]]), following


def _cursor(after: str) -> tuple[Any, str]:
    try:
        value, name = json.loads(after)
        _ = value < value  # noqa: PLR0124 - whether it can be compared
        return value, str(name)
    except (ValueError, TypeError, RecursionError):
        raise Refused(
            HTTPStatus.NOT_FOUND, "unknown_cursor", "this is no cursor of a page; begin without `after`"
        ) from None


def _is_after(key: tuple[Any, str], begin: tuple[Any, str], *, is_descending: bool) -> bool:
    try:
        return key < begin if is_descending else key > begin
    except TypeError:
        text = "the cursor is of another order; begin without `after`"
        raise Refused(HTTPStatus.NOT_FOUND, "unknown_cursor", text) from None


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
