"""The committed pages are those of the docstrings and examples, and leave no name out."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fusewire as fw
from tests.api_reference.contents import pages
from tests.api_reference.numpy_names import NUMPY_VERSION
from tests.api_reference.pages import without_example, written_pages

_COMMITTED = Path(__file__).parents[2] / "docs" / "api"
_NAMES_PAGE = "numpy-names.md"
_IS_THAT_NUMPY = np.__version__.startswith(f"{NUMPY_VERSION}.")

_written = cache(written_pages)
# These need a server or a wait, or tell of what has run before.
_WITHOUT_EXAMPLE = {
    *("Cancelled", "ConfigurationError", "OutOfMemory", "ProtocolError", "QuotaExceeded", "ServerFault"),
    *("SessionClosed", "SessionLost", "Unauthenticated", "UnknownHandle", "UploadFailed", "WaitTimeout"),
    *("Session", "Session.cancel", "Session.close", "Session.explain", "Session.id", "Session.line_of"),
    *("Session.ready", "Session.stats", "ExplainedOp", "Explanation", "ProgramExplanation", "Unfused"),
    *("Replayed", "SessionStats", "Trigger", "connect", "replay"),
    *("Profile", "Profile.save", "Profile.save_trace", "Profile.summary", "Profile.timeline"),
}


def test_the_committed_pages_are_those_that_are_written() -> None:
    assert sorted(_written()) == sorted(path.name for path in _COMMITTED.glob("*.md"))


@pytest.mark.parametrize("name", sorted(path.name for path in _COMMITTED.glob("*.md") if path.name != _NAMES_PAGE))
def test_a_committed_page_is_the_docstrings_and_the_results_of_examples(name: str) -> None:
    assert (_COMMITTED / name).read_text(encoding="utf-8") == _written()[name], "`make api-docs` writes it anew"


@pytest.mark.skipif(not _IS_THAT_NUMPY, reason=f"the table is that of NumPy {NUMPY_VERSION}")
def test_the_committed_table_is_that_of_the_names() -> None:
    assert (_COMMITTED / _NAMES_PAGE).read_text(encoding="utf-8") == _written()[_NAMES_PAGE]


def test_every_public_name_has_one_entry() -> None:
    entries = Counter(entry.key for page in pages() for entry in page.entries)
    assert {*fw.__all__} - {*entries} == set()
    assert [key for key, count in entries.items() if count > 1] == []


def test_every_entry_says_something() -> None:
    for name, text in _written().items():
        sections = text.split("\n## ")[1:]
        assert [section for section in sections if len(section.strip().splitlines()) == 1] == [], name


def test_every_function_has_an_example_but_those_that_cannot() -> None:
    assert without_example() == _WITHOUT_EXAMPLE


def test_pages_hold_no_address_of_memory() -> None:
    assert [name for name, text in _written().items() if " at 0x" in text] == []
