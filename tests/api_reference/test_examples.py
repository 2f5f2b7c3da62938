"""Examples are run, and show the value of their last line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import session_in_memory
from tests.api_reference import examples
from tests.api_reference.contents import pages

_FILES = sorted((Path(examples.__file__).parent / "examples").glob("*.toml"))


class _Pair(NamedTuple):
    left: Any
    right: Any


def test_the_value_stands_behind_the_last_line() -> None:
    with session_in_memory():
        assert examples.with_result("sum", "x = fw.ones(2)\nx.sum()") == "x = fw.ones(2)\nx.sum()  # → 2.0"


def test_a_long_value_has_a_line_of_its_own() -> None:
    with session_in_memory():
        lines = examples.with_result("arange", "fw.arange(50)")
    assert lines.startswith("fw.arange(50)\n# → [0, 1,")


def test_the_example_of_an_error_shows_its_text() -> None:
    with session_in_memory():
        assert "  # → AxisError: axis 1 is" in examples.with_result("AxisError", "fw.ones(2).sum(1)")


def test_the_example_of_an_error_that_is_not_raised_is_refused() -> None:
    with session_in_memory(), pytest.raises(AssertionError, match="raises nothing"):
        examples.with_result("AxisError", "fw.ones(2).sum(0)")


@pytest.mark.parametrize("lines", ["x = fw.ones(2)", "fw.ones(2)\nimport sys"])
def test_an_example_that_ends_without_a_value_is_refused(lines: str) -> None:
    with session_in_memory(), pytest.raises(AssertionError, match="ends with an expression"):
        examples.with_result("ones", lines)


def test_an_example_that_fails_is_not_passed_over() -> None:
    with session_in_memory(), pytest.raises(fw.ShapeError):
        examples.with_result("add", "fw.ones(2) + fw.ones(3)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (1 / 3, "0.333333"),
        (1e300, "1e+300"),
        (float("nan"), "nan"),
        (True, "True"),
        ((1,), "(1,)"),
        ((1, [2.5]), "(1, [2.5])"),
        (_Pair(1, np.zeros(2)), "_Pair(left=1, right=[0.0, 0.0])"),
        (np.float64(2), "2.0"),
        (fw.int8, "fusewire.int8"),
    ],
)
def test_a_value_is_shown_in_few_digits(value: object, text: str) -> None:
    assert examples.shown(value) == text


@pytest.mark.parametrize("path", _FILES, ids=lambda path: str(path.stem))
def test_the_examples_of_a_file_are_of_one_page(path: Path) -> None:
    (page,) = [page for page in pages() if page.name == path.stem]
    assert {*tomllib.loads(path.read_text(encoding="utf-8"))} - {entry.key for entry in page.entries} == set()
