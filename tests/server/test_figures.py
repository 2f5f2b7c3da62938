"""Figures are read, joined and kept as they declare it, and the page of figures is made from their declarations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.figures import Described, counter, declared, fact, gauge, joined, part, read, what_stays
from tests.golden_files import FOLDER, check_text
from tests.server.figures_page import figures_page


@dataclass(frozen=True)
class Inner(Described):
    """A nested record."""

    runs: int = counter()
    """Number of runs."""
    now: int = gauge()
    """What is now."""


@dataclass(frozen=True)
class Outer(Described):
    """A record."""

    name: str = fact(read="who.name")
    """Name."""
    oldest_s: float = gauge("oldest_seconds", "age", join=max)
    """Age in s of the oldest."""
    inner: Inner = part(Inner(), lambda source: source.parts)
    """What is inside."""
    cases: Mapping[str, int] = counter(default={})
    """Number of cases."""


SOURCE = SimpleNamespace(who=SimpleNamespace(name="a"), age=2.5, parts=SimpleNamespace(runs=3, now=4), cases={"x": 1})


def outers() -> st.SearchStrategy[Outer]:
    numbers = st.integers(0, 1 << 40)
    inner = st.builds(Inner, numbers, numbers)
    return st.builds(Outer, st.just("a"), st.floats(0, 10), inner, st.dictionaries(st.sampled_from("xyz"), numbers))


def test_a_record_is_read_by_the_names_and_functions_that_it_declares() -> None:
    assert read(Outer, SOURCE) == Outer("a", 2.5, Inner(3, 4), {"x": 1})


@given(st.lists(outers(), min_size=1, max_size=4))
def test_records_of_several_processes_are_joined_as_they_declare(records: list[Outer]) -> None:
    one = joined(records)
    assert one.oldest_s == max(each.oldest_s for each in records)
    assert one.inner == Inner(sum(each.inner.runs for each in records), sum(each.inner.now for each in records))
    keys = {key for each in records for key in each.cases}
    assert one.cases == {key: sum(each.cases.get(key, 0) for each in records) for key in keys}


@given(st.lists(outers(), min_size=3, max_size=3))
def test_it_does_not_matter_in_which_groups_they_are_joined(records: list[Outer]) -> None:
    first, second, third = records
    assert joined([joined([first, second]), third]) == joined([first, joined([second, third])]) == joined(records)


def test_what_has_been_counted_stays_and_what_was_then_does_not() -> None:
    assert what_stays(read(Outer, SOURCE)) == Outer("a", 0.0, Inner(3, 0), {"x": 1})


def test_the_text_of_a_figure_is_the_sentence_below_its_field() -> None:
    assert [each.text for each in declared(Inner)] == ["Number of runs.", "What is now."]
    assert declared(Outer)[1].metric_text == "Age in seconds of the oldest."


def test_the_page_of_figures_is_made_from_their_declarations() -> None:
    check_text(str(FOLDER.parents[1] / "docs" / "figures.md"), figures_page())
