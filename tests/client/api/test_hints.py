"""Hints follow from what was counted."""

from __future__ import annotations

from fusewire._api.hints import LEAST_ALIKE, LEAST_READS, hints_of
from fusewire._stream.sender import Trigger
from fusewire_protos.programs.explained import ExplainedProgram

_NO_CUTS = {trigger.value: 0 for trigger in Trigger}


def _program(*names: str, planning_ns: int = 0) -> ExplainedProgram:
    return ExplainedProgram("ab", False, len(names), names, "loaded", "launches", planning_ns=planning_ns)


def _reading(reads: int, others: int) -> list[str]:
    return [*hints_of({**_NO_CUTS, "demand": reads, "count": others}, [])]


def test_nothing_counted_gives_no_hint() -> None:
    assert [*hints_of(_NO_CUTS, [_program("add")])] == []


def test_reads_that_cut_most_segments_are_told_with_their_count() -> None:
    (hint,) = _reading(100, 20)
    assert hint.startswith("100 of 120 segments were sent because a value was read")
    assert "read every 100 steps" in hint


def test_few_reads_are_no_cause() -> None:
    assert _reading(LEAST_READS - 1, 0) == []
    assert _reading(100, 101) == []


def test_equal_ops_of_many_shapes_are_told_with_their_count_and_time() -> None:
    alike = [_program("matmul", "add", planning_ns=500_000_000)] * LEAST_ALIKE
    (hint,) = hints_of(_NO_CUTS, [*alike, _program("exp")])
    assert f"{LEAST_ALIKE} shapes, {LEAST_ALIKE} plans, which took 4.0 s to make" in hint
    assert "(matmul, add)" in hint
    assert [*hints_of(_NO_CUTS, alike[1:])] == []
