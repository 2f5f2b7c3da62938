"""A program as text for people, and the bounds on what is told of a plan."""

from __future__ import annotations

from dataclasses import replace

from fusewire_server.inspect.program_text import MOST_LINES, MOST_SOURCE_CHARACTERS, bounded, program_text
from fusewire_server.inspect.snapshot import GroupView, Omitted, ProgramDetail, SourceView
from tests.server.inspect.examples import PLANNED, UNPLANNED


def large() -> ProgramDetail:
    assert PLANNED.compiled is not None
    text = "x" * (MOST_SOURCE_CHARACTERS // 2)
    return replace(
        PLANNED,
        compiled=replace(
            PLANNED.compiled,
            groups=(GroupView("k", (1,), 1),) * (MOST_LINES + 2),
            explanation=("why",) * (MOST_LINES + 1),
            sources=tuple(SourceView(name, text) for name in "abc"),
        ),
    )


def test_a_plan_within_the_bounds_is_told_whole() -> None:
    assert bounded(PLANNED) == PLANNED
    assert bounded(UNPLANNED) == UNPLANNED


def test_what_goes_beyond_the_bounds_is_counted() -> None:
    plan = bounded(large()).compiled
    assert plan is not None
    assert (len(plan.groups), len(plan.explanation)) == (MOST_LINES, MOST_LINES)
    assert [source.kernel for source in plan.sources] == ["a", "b"]
    assert plan.omitted == Omitted(groups=2, explanation=1, sources=1)


def test_the_text_tells_the_use_the_launches_the_reasons_and_the_kernels() -> None:
    text = program_text(PLANNED)
    for told in ("aa", "3 hits", "k_add", "instances 2", "ops 0 to 4 run as one kernel", "void k_add(void) {}"):
        assert told in text
    assert "left out" not in text


def test_the_text_says_what_is_left_out() -> None:
    assert program_text(bounded(large())).endswith(": 2 launches, 1 lines, 1 kernels\n")


def test_the_text_says_why_a_program_has_no_plan() -> None:
    refused = replace(UNPLANNED, program=replace(UNPLANNED.program, refusal="too large"))
    assert "the program runs op by op" in program_text(UNPLANNED)
    assert "too large" in program_text(refused)
