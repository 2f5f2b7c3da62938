"""Pages of a list."""

from __future__ import annotations

from fusewire_server.inspect.routes.paging import page_of


def pages(items: list[str], limit: int) -> list[tuple[str, ...]]:
    """All pages, from the first to the last."""
    page, cursor = page_of(items, str, "", limit)
    found = [page]
    while cursor is not None:
        page, cursor = page_of(items, str, cursor, limit)
        found.append(page)
    return found


def test_pages_hold_each_item_once_in_order() -> None:
    assert pages(["c", "a", "d", "b", "e"], 2) == [("a", "b"), ("c", "d"), ("e",)]


def test_a_full_last_page_has_no_next() -> None:
    assert pages(["b", "a"], 2) == [("a", "b")]
    assert pages([], 2) == [()]


def test_a_cursor_whose_item_has_gone_loses_none() -> None:
    assert page_of(["a", "c"], str, "b", 2) == (("c",), None)
