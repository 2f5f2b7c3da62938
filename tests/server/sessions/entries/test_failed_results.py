"""What fails with what is wrong in a segment: the results that depend on it, each told of the first cause."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from fusewire_protos.credit import NO_WORK
from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import Fetch, Forget, Free, NewProgram, Segment
from fusewire_protos.in_steps import InSteps
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program, build
from fusewire_server.programs import dependent_results
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions import iterations
from fusewire_server.sessions.entries import failed_results
from fusewire_server.sessions.entries.frame import Arrival, Item
from fusewire_server.sessions.rows import drop_row, fail_from_inputs, fail_value
from fusewire_server.sessions.session import ValueState
from tests.program_bytes import program_bytes
from tests.server.parts import SIZE_BYTES, VECTOR, new, op, segment, upload, upload_beside
from tests.server.tables import FAULT, NEGATE, PAIR, SCALE, World, answers, bases, failure


def test_a_failed_upload_poisons_its_dependents_only() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), segment(NEGATE, 100, 20), segment(NEGATE, 200, 100), segment(NEGATE, 300, 10))
    fail_value(one, one.values[20], FAULT)
    while one.queue:
        world.submit_next(one)
    assert one.values[100].failure == one.values[200].failure == FAULT
    assert one.values[300].state is ValueState.READY


def test_one_bad_input_fails_only_the_results_that_need_it() -> None:
    world = World()
    one = world.session()
    effects = world.take(one, segment(PAIR, 100, 10, 999))
    failed = {handle for handle in (100, 101, 102) if one.values[handle].state is ValueState.FAILED}
    assert failed == {101, 102}
    assert [failure.case.name for failure in effects.failures] == ["unknown_handle"]
    world.submit_next(one)
    assert one.values[100].state is ValueState.READY


def test_many_bad_inputs_are_followed_through_the_program_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[object] = []
    follow = dependent_results.first_failed

    def counted(program: Program, failed: Mapping[int, int], *, is_loop: bool) -> InSteps[dict[int, tuple[int, int]]]:
        passes.append(program)
        return follow(program, failed, is_loop=is_loop)

    monkeypatch.setattr(iterations, "first_failed", counted)
    world = World()
    one = world.session()
    wide = build([VECTOR] * 100, [], [op("add", number, number + 1) for number in range(99)], range(99))
    world.take(one, new(9, wide))
    world.take(one, segment(9, 1000, *range(500, 600)))
    assert len(passes) == 1
    assert "handle 500 " in failure(one, 1000).text
    assert "handle 598 " in failure(one, 1098).text


def test_however_many_inputs_are_absent_one_failure_is_told_and_one_stand_in_is_made_of_each_spec() -> None:
    world = World()
    one = world.session()
    wide = build([VECTOR] * 100, [], [op("negative", 0), op("add", 1, 99)], (0, 1))
    world.take(one, new(9, wide))
    effects = world.take(one, segment(9, 1000, 10, *range(500, 599)))
    assert [failure.text for failure in effects.failures] == ["handle 500 names nothing in this session"]
    (row,) = one.queue
    assert row.inputs[0] is one.values[10]
    assert {value.state for value in row.inputs[1:]} == {ValueState.STAND_IN}
    assert len(set(row.inputs[1:])) == 1


def test_many_results_fail_piece_by_piece_before_their_row_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_results, "MOST_FAILED", 2)
    world = World()
    one = world.session()
    partly = build([VECTOR, VECTOR], [], [op("negative", 0), *[op("negative", 1)] * 5], range(6))
    world.take(one, new(9, partly))
    arrival = Arrival((), 0)
    left: Item | None = segment(9, 1000, 10, 999)
    failed: list[int] = []
    while left is not None:
        assert not one.queue
        left = world.intake.take(one, [left], arrival).left
        failed.append(sum(value.state is ValueState.FAILED for value in one.values.values()))
    assert failed == [2, 4, 5]
    assert bases(one.queue) == [1000]
    world.submit_next(one)
    assert one.values[1000].state is ValueState.READY


def test_a_failed_result_with_the_handle_of_a_value_leaves_the_value() -> None:
    world = World()
    one = world.session()
    world.take(one, new(9, build([VECTOR, VECTOR], [], [op("negative", 0)] * 5, range(5))), upload(103))
    world.take(one, segment(9, 100, 999, 10), segment(NEGATE, 200, 103))
    assert bases(one.queue) == [200]
    world.take(one, Free((103,)))
    world.submit_next(one)
    assert "handle 999 " in failure(one, 103).text


def test_results_of_several_reasons_are_each_told_of_their_own() -> None:
    world = World()
    one = world.session()
    world.take(one, new(9, build([VECTOR, VECTOR], [], [op("negative", 0), op("negative", 1)], (0, 1))))
    world.take(one, segment(9, 100, 998, 999))
    assert ["handle 998 " in failure(one, 100).text, "handle 999 " in failure(one, 101).text] == [True, True]


def test_what_depends_on_failed_results_carries_their_failure_and_counts_no_other() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(NEGATE, 100, 999))
    effects = world.take(one, segment(NEGATE, 200, 100), segment(PAIR, 300, 10, 200))
    assert effects.failures == []
    assert failure(one, 100) == failure(one, 200) == failure(one, 301) == failure(one, 302)
    assert bases(one.queue) == [300]


def test_the_inputs_of_a_failed_segment_die_with_it() -> None:
    world = World()
    one = world.session()
    world.take(one, new(9, build([VECTOR, VECTOR], [], [op("negative", 0)] * 5, range(5))))
    effects = world.take(one, segment(9, 100, 999, 10, dying=(1,)))
    assert [value.handle for value in effects.released] == [10]
    assert [*one.values] == [11]
    assert one.failed.count == 5


def test_each_failed_result_of_a_segment_names_its_own_op() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(PAIR, 100, 10, 999), Segment(PAIR, 200, (10,), (), (), ()))
    text = "handle 999 names nothing in this session"
    assert failure(one, 101) == Failure(BY_NAME["unknown_handle"], f"op 1 negative: {text}", 100, 1)
    assert failure(one, 102) == Failure(BY_NAME["unknown_handle"], f"op 2 add: {text}", 100, 2)
    failures = [failure(one, 200 + index) for index in range(3)]
    assert [failure.op_index for failure in failures] == [0, 1, 2]
    assert [failure.text.split(":")[0] for failure in failures] == ["op 0 negative", "op 1 negative", "op 2 add"]


def test_a_dependent_names_the_op_that_failed_first() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(PAIR, 100, 10, 999), segment(NEGATE, 200, 102))
    world.submit_next(one)
    world.submit_next(one)
    assert failure(one, 200) == failure(one, 102)


def test_an_input_that_fails_late_is_replaced_by_a_stand_in_of_the_programs_spec() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20, Spec(dtypes.uint8, (1,))))
    fail_value(one, one.values[20], FAULT)
    world.take(one, segment(PAIR, 100, 10, 20, dying=(1,)))
    row = one.queue[0]
    fail_from_inputs(row, [])
    assert (row.inputs[1].state, row.inputs[1].spec) == (ValueState.STAND_IN, VECTOR)
    assert [value.state for value in row.outputs] == [ValueState.ISSUED, ValueState.FAILED, ValueState.FAILED]
    assert 20 not in one.values


@pytest.mark.parametrize(
    ("bad", "case"),
    [
        (Segment(SCALE, 100, (10,), (), (), ()), "bad_binding"),
        (Segment(SCALE, 100, (10,), (1.0, 2.0), (), ()), "bad_binding"),
        (Segment(NEGATE, 100, (10,), (), (0,), ()), "bad_binding"),
        (Segment(NEGATE, 100, (), (), (), ()), "bad_binding"),
        (Segment(NEGATE, 100, (10, 11), (), (), ()), "bad_binding"),
        (segment(NEGATE, 100, 20), "bad_binding"),
        (segment(NEGATE, 100, 999), "unknown_handle"),
    ],
)
def test_a_segment_that_does_not_fit_fails_its_results_and_gives_its_credit_back(bad: Segment, case: str) -> None:
    world = World()
    one = world.session()
    world.take(one, upload(20, Spec(dtypes.uint8, (SIZE_BYTES,))), segment(NEGATE, 50, 10))
    world.take(one, bad, Fetch(1, 100))
    assert answers(one)[1][0] == case
    assert failure(one, 100).case.name == case
    while one.queue:
        drop_row(one.queue.popleft(), FAULT, [])
    one.complete(one.in_flight._replace(ops=0, segments=0))
    assert one.in_flight == NO_WORK


def test_what_a_segment_carries_is_not_looked_at_unless_it_has_the_inputs_of_its_program() -> None:
    world = World()
    one = world.session()
    world.take(one, Segment(SCALE, 100, (), (True,) * 7, (0,), ()))
    assert failure(one, 100).text == "op 0 multiply: 0 inputs; the program has 1"


def test_unknown_foreign_and_freed_handles_get_one_and_the_same_answer() -> None:
    world = World()
    one, other = world.session("a"), world.session("b")
    world.take(other, upload(77))
    world.take(one, upload(78), Free((78,)), Fetch(1, 76), Fetch(2, 77), Fetch(3, 78))
    world.take(one, segment(NEGATE, 100, 76), segment(NEGATE, 101, 77), segment(NEGATE, 102, 78))
    words = {re.sub(r"\d+", "N", text) for _, text in answers(one).values()}
    words |= {re.sub(r"\d+", "N", failure(one, handle).text) for handle in (100, 101, 102)}
    plain = "handle N names nothing in this session"
    assert words == {plain, f"op N negative: {plain}"}
    assert {case for case, _ in answers(one).values()} == {"unknown_handle"}


def test_a_rejected_program_poisons_its_live_handles_and_the_session_lives() -> None:
    world = World()
    one = world.session()
    unknown_op = program_bytes([[6, 4]], [], [[65535, [0]], [65535, [1]]], [1])
    effects = world.take(one, NewProgram(9, False, unknown_op))
    assert [failure.case.name for failure in effects.failures] == ["unknown_op"]
    world.take(one, segment(9, 100, 10, dying=(0,)), segment(NEGATE, 200, 101), Fetch(1, 101))
    assert answers(one)[1][0] == "unknown_op"
    assert 100 not in one.values
    assert 10 not in one.values
    world.take(one, Forget(9))
    with pytest.raises(CaseError, match="unknown_program"):
        world.take(one, segment(9, 300, 11))
