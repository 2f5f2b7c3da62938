"""Hints follow from what was counted."""

from __future__ import annotations

from fusewire._api.hints import (
    LEAST_ALIKE,
    LEAST_FRAGMENTS,
    LEAST_PAUSES,
    LEAST_READS,
    LEAST_REPEATS,
    Counted,
    hints_of,
)
from fusewire._stream.sender import Trigger
from fusewire_protos.programs.explained import ExplainedProgram
from fusewire_protos.programs.records import NO_RECORDS

_NO_CUTS = {trigger.value: 0 for trigger in Trigger}
_NOTHING = Counted(_NO_CUTS)


def _program(*names: str, planning_ns: int = 0) -> ExplainedProgram:
    return ExplainedProgram("ab", False, len(names), names, "loaded", "launches", planning_ns=planning_ns)


def _reading(reads: int, others: int) -> list[str]:
    return [*hints_of(Counted({**_NO_CUTS, "demand": reads, "count": others}), [])]


def test_nothing_counted_gives_no_hint() -> None:
    assert [*hints_of(_NOTHING, [_program("add")])] == []


def test_reads_that_cut_most_segments_are_told_with_their_count() -> None:
    (hint,) = _reading(100, 20)
    assert hint.startswith("100 of 120 segments were sent because a value was read")
    assert "read every 100 steps" in hint


def test_few_reads_are_no_cause() -> None:
    assert _reading(LEAST_READS - 1, 0) == []
    assert _reading(100, 101) == []


def test_equal_ops_of_many_shapes_are_told_with_their_count_and_time() -> None:
    alike = [_program("matmul", "add", planning_ns=500_000_000)] * LEAST_ALIKE
    (hint,) = hints_of(_NOTHING, [*alike, _program("exp")])
    assert f"{LEAST_ALIKE} shapes, {LEAST_ALIKE} plans, which took 4.0 s to make" in hint
    assert "(matmul, add)" in hint
    assert [*hints_of(_NOTHING, alike[1:])] == []


def _pausing(pauses: int, others: int, ops: int) -> list[str]:
    return [*hints_of(Counted({**_NO_CUTS, "age": pauses, "count": others}, ops), [])]


def test_pauses_that_cut_small_segments_are_told_with_their_size() -> None:
    (hint,) = _pausing(100, 20, 360)
    assert hint.startswith("100 of 120 segments were sent because recording paused for a millisecond, with 3.0 ops")


def test_few_pauses_or_large_segments_are_no_cause() -> None:
    assert _pausing(LEAST_PAUSES - 1, 0, 100) == []
    assert _pausing(100, 101, 100) == []
    assert _pausing(100, 0, 1600) == []


def _fragments(fragments: int, segments: int, distinct: int) -> list[str]:
    return [*hints_of(Counted({**_NO_CUTS, "count": segments}, 10_000, fragments, distinct), [])]


def test_fragments_that_all_differ_tell_that_no_loop_was_found() -> None:
    (hint,) = _fragments(100, 120, 90)
    assert hint.startswith("100 of 120 segments are no whole body of a loop, and 90 of them differ")


def test_few_fragments_and_those_that_repeat_are_no_cause() -> None:
    assert _fragments(LEAST_FRAGMENTS - 1, LEAST_FRAGMENTS, LEAST_FRAGMENTS) == []
    assert _fragments(100, 201, 100) == []
    assert _fragments(100, 120, 50) == []


def _uploads(uploads: int, repeats: int) -> list[str]:
    return [*hints_of(Counted(_NO_CUTS, uploads=uploads, repeats=repeats), [])]


def test_equal_uploads_are_told_with_their_count() -> None:
    (hint,) = _uploads(100, 60)
    assert hint.startswith("60 of 100 small uploads brought the bytes of the one before")
    assert _uploads(100, 49) == _uploads(LEAST_REPEATS - 1, LEAST_REPEATS - 1) == []


def test_why_a_program_has_no_plan_and_a_loop_no_kernel_of_its_own_is_told_once() -> None:
    refused = _program("exp")._replace(refusal="no space left")
    loop = _program("tanh")._replace(records=NO_RECORDS._replace(why_launched="it reduces all elements"))
    hints = [*hints_of(_NOTHING, [refused, refused, loop, _program("add")])]
    assert hints == [
        "the program ab (and of 1 more) runs op by op, without a plan: no space left",
        "each iteration of the loop ab is launched by itself: it reduces all elements",
    ]
