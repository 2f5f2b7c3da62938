"""A program as text for people."""

from __future__ import annotations

from dataclasses import replace

from fusewire_server.inspect.program_text import MOST_LINES, MOST_SOURCE_CHARACTERS, bounded, program_text
from fusewire_server.inspect.snapshots.plan_views import GroupView, Omitted, SourceView
from fusewire_server.inspect.snapshots.program_view import Launching
from tests.server.inspect.examples import PLANNED, UNPLANNED


def test_a_planned_program_tells_its_launches_its_fusion_and_its_kernels() -> None:
    text = program_text(PLANNED)
    assert text.startswith("program aa: 200 ops, tier 1 (launches), loaded\n")
    assert "k_add × 2, sizes [64]" in text
    assert "\nlaunch 0: 2 × (add #0; sum #1)\n" in text
    assert "\nno launch (dead): exp #2\n" in text
    assert "\nsum #1 not fused with add #0: the two are computed at different points\n" in text
    assert text.endswith("---- k_add ----\nvoid k_add(void) {}\n")


def test_a_planned_program_tells_of_its_graphs_and_why_it_has_no_better_form() -> None:
    launching = Launching(persistent_launches=7, graphs=2, captured=3, evicted=1)
    with_graphs = replace(PLANNED, program=replace(PLANNED.program, launching=launching))
    assert "\n2 captured graphs, of 3 so far; 7 persistent launches\n" in program_text(with_graphs)
    without = replace(PLANNED, program=replace(PLANNED.program, why_no_graph="too few launches"))
    assert "\nno captured graph: too few launches\n" in program_text(without)
    other = replace(PLANNED, program=replace(PLANNED.program, why_not_persistent="2 iterations"))
    assert "\nnot by the persistent kernel: 2 iterations\n" in program_text(other)


def test_a_program_without_a_plan_tells_its_counts() -> None:
    text = program_text(UNPLANNED)
    assert "3 segments, 3 rows in 2 submissions" in text
    assert "launches" not in text


def test_a_time_that_was_not_measured_is_not_told_as_0() -> None:
    unmeasured = replace(PLANNED.program, row_ns=0, planning_ns=0, compiling_ns=0)
    text = program_text(replace(PLANNED, program=unmeasured))
    assert "\nhow long a row takes is not known: none has run at this tier\n" in text
    assert " 0.0 " not in text


def test_a_plan_within_the_bounds_is_told_whole() -> None:
    assert bounded(PLANNED) == PLANNED
    assert bounded(UNPLANNED) == UNPLANNED


def test_what_goes_beyond_the_bounds_is_counted() -> None:
    assert PLANNED.compiled is not None
    half = "x" * (MOST_SOURCE_CHARACTERS // 2)
    long = replace(
        PLANNED.compiled,
        groups=(GroupView("k", (1,), 1),) * (MOST_LINES + 2),
        ops=PLANNED.compiled.ops[:1] * (MOST_LINES + 3),
        unfused=PLANNED.compiled.unfused * (MOST_LINES + 1),
        sources=tuple(SourceView(name, half) for name in "abc"),
    )
    detail = bounded(replace(PLANNED, compiled=long))
    plan = detail.compiled
    assert plan is not None
    assert (len(plan.groups), len(plan.ops), len(plan.unfused)) == (MOST_LINES, MOST_LINES, MOST_LINES)
    assert [source.kernel for source in plan.sources] == ["a", "b"]
    assert plan.omitted == Omitted(groups=2, ops=3, unfused=1, sources=1)
    assert program_text(detail).endswith(": 2 launches, 3 ops, 1 pairs of ops, 1 kernels\n")
