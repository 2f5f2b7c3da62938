"""All pages of the reference as text."""

from __future__ import annotations

from collections.abc import Mapping

import fusewire as fw
from fusewire.testing import session_in_memory
from tests.api_reference import numpy_names
from tests.api_reference.contents import Entry, Page, pages
from tests.api_reference.entries import Links, is_second_name, text_of
from tests.api_reference.examples import all_examples, with_result
from tests.api_reference.operators import operators_table

_WRITTEN_BY = "<!-- `make api-docs` writes this page. -->\n\n"
# Most methods are functions too, whose pages have the examples; the others tell or open something, and compute nothing.
_PAGES_WITHOUT_EXAMPLES = ("array", "constants", "testing")
_HOW_TO_READ = """\
Each page lists functions of the namespace `fusewire` by topic: their parameters, what they do, and an example that a
test runs. In examples, `fw` is `fusewire` and `np` is NumPy. Behind `→` stands the value: arrays as lists, and floats
rounded to 6 digits. [NumPy's names](numpy-names.md) lists the names of NumPy and of the array API standard, and where
each is here, or what to write instead.
"""


def written_pages() -> dict[str, str]:
    """Returns the text of each file in docs/api, by its name. Runs all examples."""
    contents, examples = pages(), all_examples()
    links = links_of(contents)
    with session_in_memory():
        results = {key: with_result(key, lines) for key, lines in examples.items()}
    texts = {f"{page.name}.md": _text(page, links, results) for page in contents}
    texts["README.md"] = _index(contents)
    texts["numpy-names.md"] = numpy_names.text(_places(contents))
    return {name: _WRITTEN_BY + text for name, text in texts.items()}


def links_of(contents: tuple[Page, ...]) -> Links:
    """Returns where each function has its entry: under the name that it has itself, if there are several."""
    links: dict[int, tuple[str, str]] = {}
    for page in contents:
        for entry in page.entries:
            is_first = id(entry.value) not in links
            is_function = callable(entry.value) and not isinstance(entry.value, fw.DType)
            if is_function and (is_first or entry.value.__name__ == entry.name):
                links[id(entry.value)] = entry.name, _place(page, entry)
    return links


def without_example() -> set[str]:
    """Returns the functions, methods and errors of the pages that have no example yet."""
    contents, examples = pages(), all_examples()
    links = links_of(contents)
    shown = [entry for page in contents if page.name not in _PAGES_WITHOUT_EXAMPLES for entry in page.entries]
    return {each.key for each in shown if not is_second_name(each, links)} - set(examples)


def _places(contents: tuple[Page, ...]) -> dict[str, str]:
    """Where each name of the namespace has its entry."""
    named = ((entry, _place(page, entry)) for page in contents for entry in page.entries)
    return {entry.name: place for entry, place in named if entry.key == entry.name}


def _place(page: Page, entry: Entry) -> str:
    return f"{page.name}.md#{entry.title.lower().replace('.', '')}"


def _text(page: Page, links: Links, results: Mapping[str, str]) -> str:
    entries = [text_of(entry, links, results.get(entry.key)) for entry in page.entries]
    if page.name == "array":
        entries.insert(1, operators_table(links))
    return "\n\n".join([f"# {page.title}", page.summary, *entries]) + "\n"


def _index(contents: tuple[Page, ...]) -> str:
    return "\n".join(["# API reference", "", _HOW_TO_READ, *map(_row, contents)]) + "\n"


def _row(page: Page) -> str:
    names = ", ".join(f"[`{entry.title}`]({_place(page, entry)})" for entry in page.entries)
    return f"- **[{page.title}]({page.name}.md)**: {page.summary}\n  {names}"
