"""CONTRIBUTING.md lists what an addition takes: the files that it names are there, and have the names that it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_LISTS = (
    "A pointwise op",
    "A reduction",
    "A library op",
    "An op of several results",
    "A REST route",
    "A setting",
    "A backend",
)
_CODE = re.compile(r"`([^`]+)`")
_PATH = re.compile(r"[\w./]+/[\w.]+\.\w+")
_NAME = re.compile(r"[\w/]+")  # of a function, a class, a table or a route; not a command or a piece of text


def _items(text: str) -> dict[str, list[str]]:
    """The numbered items of each list, by its heading."""
    _, _, additions = text.partition("## What an addition takes\n")
    sections = re.split(r"^### (.+)$", additions.partition("\n## ")[0], flags=re.MULTILINE)[1:]
    found = {}
    for heading, section in zip(sections[::2], sections[1::2], strict=True):
        items = re.findall(r"^\d+\. (.+?)(?=^\d+\. |\n\n|\Z)", section.strip() + "\n", re.MULTILINE | re.DOTALL)
        if items:
            found[heading] = items
    return found


def _untrue(item: str) -> list[str]:
    """What an item names and is not there. A name is in one of the files of its item."""
    code = _CODE.findall(item)
    paths = [each for each in code if _PATH.fullmatch(each)]
    names = [each for each in code if _NAME.fullmatch(each)]
    missing = [path for path in paths if not (_ROOT / path).is_file()]
    texts = [(_ROOT / path).read_text(encoding="utf-8") for path in paths if path not in missing]
    return missing + [name for name in names if not any(_names(text, name) for text in texts)]


def _names(text: str, name: str) -> bool:
    """Whether a text has a name as a whole word, or as the beginning of one if it ends with `_`."""
    return re.search(rf"(?<!\w){name}" + ("" if name.endswith("_") else r"(?!\w)"), text) is not None


_ITEMS = _items((_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def test_there_is_a_list_for_each_kind_of_addition() -> None:
    assert tuple(_ITEMS) == _LISTS


@pytest.mark.parametrize("heading", _LISTS)
def test_each_item_begins_with_a_file(heading: str) -> None:
    assert len(_ITEMS[heading]) > 1
    for item in _ITEMS[heading]:
        first = _CODE.match(item)
        assert first, item
        assert _PATH.fullmatch(first[1]), item


@pytest.mark.parametrize("heading", _LISTS)
def test_every_file_and_every_name_in_a_list_is_there(heading: str) -> None:
    assert [missing for item in _ITEMS[heading] for missing in _untrue(item)] == []


def test_a_file_or_a_name_that_is_not_there_is_found() -> None:
    catalogue = "protos/fusewire_protos/ops/catalogue.py"
    text = f"1. `gone/from/here.py`: `a`.\n2. `{catalogue}`: `OPS`, `_GONE`,\n   `BY_NAM`, `BY_`, `make it`.\n"
    items = _items(f"## What an addition takes\n\n### It\n\n{text}\n## Else\n\n1. `not/read.py`\n")
    assert [_untrue(item) for item in items["It"]] == [["gone/from/here.py", "a"], ["_GONE", "BY_NAM"]]
