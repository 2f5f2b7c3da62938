"""Cuts a list into pages. The cursor of a page is the key of its last item, so that items which go lose none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import Annotated, TypeVar

from fastapi import Query

T = TypeVar("T")

MOST_ITEMS = 1000
_LONGEST_CURSOR = 256

Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="most items of the page", examples=[100])]
After = Annotated[
    str, Query(max_length=_LONGEST_CURSOR, description="cursor: `next` of the page before; empty for the first page")
]


def page_of(items: Iterable[T], key: Callable[[T], str], after: str, limit: int) -> tuple[tuple[T, ...], str | None]:
    """Returns the items with the next keys above `after`, in the order of their keys, and the cursor of the next page.

    The cursor is None if no items are left.
    """
    found = nsmallest(limit + 1, (item for item in items if key(item) > after), key=key)
    page = tuple(found[:limit])
    return page, key(page[-1]) if len(found) > limit else None
