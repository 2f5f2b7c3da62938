"""What the entries of frames come to: rows, fetches, failures; and that nothing outlives its last user."""

from __future__ import annotations

import gc
import re
import time
import weakref
from collections.abc import Iterable, Sequence

import pytest

from fusewire_protos import dtypes
from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import INLINE_BYTES, Abandon, Cancel, Entry, Fetch, Forget, Free, NewProgram, Segment
from fusewire_protos.program import Program, build, encode
from fusewire_protos.shapes import Spec
from fusewire_server import validate
from fusewire_server.config import Limits
from fusewire_server.intake import Arrival, Intake, Item, Taken
from fusewire_server.programs import ProgramTable, TableBounds
from fusewire_server.session import Session
from fusewire_server.values import make_ready, release_if_dead
from fusewire_server.work import NO_WORK, Failure, Row, ValueState
from tests.server.parts import (
    CREDIT,
    SIZE_BYTES,
    VECTOR,
    VECTOR_BYTES,
    addition,
    chain,
    new,
    op,
    pair,
    scaling,
    segment,
    session,
    upload,
    upload_beside,
)

NEGATE, ADD, PAIR, SCALE = 1, 2, 3, 4
PROGRAMS: dict[int, Program] = {NEGATE: chain(), ADD: addition(), PAIR: pair(), SCALE: scaling()}
FAULT = Failure(BY_NAME["upload_failed"], "stalled", 0, 0)


class World:
    """An intake and its sessions; what is ready or failed is said by the test."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.programs = ProgramTable(
            self.limits.program_limits(), 3, TableBounds(100, session_bytes=self.limits.held_program_bytes)
        )
        self.intake = Intake(self.limits, self.programs)

    def session(self, name: str = "a") -> Session:
        """A session that has numbered all programs and holds 10 and 11, ready."""
        one = session(name)
        self.take(one, *[new(number, program) for number, program in PROGRAMS.items()])
        self.take(one, upload(10), upload(11))
        one.complete(one.in_flight)
        return one

    def take(self, one: Session, *items: Item, tensors: Sequence[bytes] = (VECTOR_BYTES,)) -> Taken:
        taken = Taken()
        self.intake.take(one, items, Arrival(tensors, 0), taken)
        return taken

    def submit_next(self, one: Session) -> Taken:
        """What the engine does with the head of the queue, as far as tables go."""
        taken = Taken()
        row = one.queue.popleft()
        self.intake.poison_from_inputs(row, taken)
        for value in row.inputs:
            value.readers -= 1
            release_if_dead(one, value, taken.released)
        for value in row.outputs:
            if value.state is not ValueState.FAILED:
                make_ready(value, taken.reads)
                release_if_dead(one, value, taken.released)
        one.complete(row.amount)
        return taken


def bases(rows: Sequence[Row]) -> list[int]:
    return [row.base for row in rows]


def answers(one: Session) -> dict[int, tuple[str, str]]:
    """Failures owed, by fetch: case and text."""
    assert all(answer.failure is not None for answer in one.answers)
    return {answer.fetch: (answer.failure.case.name, answer.failure.text) for answer in one.answers if answer.failure}


# ---- rows ----


def test_segments_join_the_queue_in_order_with_their_results_minted() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(NEGATE, 100, 10), segment(ADD, 200, 100, 11))
    assert bases(one.queue) == [100, 200]
    assert [value.handle for row in one.queue for value in row.inputs] == [10, 100, 11]
    assert one.values[200].state is ValueState.ISSUED


def test_a_segments_use_is_counted_and_its_program_is_to_be_planned() -> None:
    world = World()
    one = world.session()
    taken = world.take(one, segment(NEGATE, 100, 10))
    entry = one.programs[NEGATE]
    assert (entry.uses, taken.to_plan, taken.used) == (1, [entry], [entry])


def test_rows_that_need_an_upload_are_held_back_and_others_go_on() -> None:
    world = World()
    one = world.session()
    world.take(
        one,
        upload_beside(20),
        segment(NEGATE, 100, 20),
        segment(NEGATE, 200, 10),
        segment(ADD, 300, 100, 200),
        segment(NEGATE, 400, 200),
    )
    assert bases(one.queue) == [200, 400]
    taken = Taken()
    world.intake.uploaded(one, one.values[20], taken)
    assert bases(one.queue) == [200, 400, 100, 300]
    assert not one.held_back


def test_a_row_that_waits_for_two_uploads_goes_on_after_both() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), upload_beside(21), segment(ADD, 100, 20, 21), segment(ADD, 200, 21, 21))
    world.intake.uploaded(one, one.values[21], Taken())
    assert bases(one.queue) == [200]
    world.intake.uploaded(one, one.values[20], Taken())
    assert bases(one.queue) == [200, 100]


def test_two_held_back_rows_may_have_the_same_base() -> None:
    world = World()
    one = world.session()
    first, second = chain(("abs", "sign"), live=(0,)), chain(("abs", "sign"), live=(1,))
    world.take(one, new(8, first), new(9, second))
    world.take(one, upload_beside(20), upload_beside(21), segment(8, 100, 20), segment(9, 100, 21))
    world.intake.uploaded(one, one.values[20], Taken())
    assert [row.inputs[0].handle for row in one.queue] == [20]
    world.intake.uploaded(one, one.values[21], Taken())
    assert [row.inputs[0].handle for row in one.queue] == [20, 21]


def test_a_chain_of_held_back_rows_may_be_long() -> None:
    world = World(Limits(credit_segments=10_000))
    one = world.session()
    one.credit = CREDIT._replace(ops=10_000, segments=10_000)
    chained = [segment(NEGATE, 1000 + index, 999 + index) for index in range(2000)]
    world.take(one, upload_beside(999), *chained)
    world.intake.uploaded(one, one.values[999], Taken())
    assert bases(one.queue) == [1000 + index for index in range(2000)]


# ---- failures ----


def test_a_failed_upload_poisons_its_dependents_only() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), segment(NEGATE, 100, 20), segment(NEGATE, 200, 100), segment(NEGATE, 300, 10))
    world.intake.fail(one, one.values[20], FAULT, Taken())
    while one.queue:
        world.submit_next(one)
    assert one.values[100].failure == one.values[200].failure == FAULT
    assert one.values[300].state is ValueState.READY


def test_one_bad_input_fails_only_the_results_that_need_it() -> None:
    world = World()
    one = world.session()
    taken = world.take(one, segment(PAIR, 100, 10, 999))
    failed = {handle for handle in (100, 101, 102) if one.values[handle].state is ValueState.FAILED}
    assert failed == {101, 102}
    assert [failure.case.name for failure in taken.failures] == ["unknown_handle"]
    world.submit_next(one)
    assert one.values[100].state is ValueState.READY


def test_many_bad_inputs_are_followed_through_the_program_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[object] = []
    follow = validate.first_failed

    def counted(program: Program, failed: Iterable[int]) -> dict[int, int]:
        passes.append(program)
        return follow(program, failed)

    monkeypatch.setattr(validate, "first_failed", counted)
    world = World()
    one = world.session()
    wide = build([VECTOR] * 100, [], [op("add", number, number + 1) for number in range(99)], range(99))
    world.take(one, new(9, wide))
    world.take(one, segment(9, 1000, *range(500, 600)))
    assert len(passes) == 1
    assert "handle 500 " in _failure(one, 1000).text
    assert "handle 598 " in _failure(one, 1098).text


def test_each_failed_result_of_a_segment_names_its_own_op() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(PAIR, 100, 10, 999), Segment(PAIR, 200, (10,), (), (), ()))
    text = "handle 999 names nothing in this session"
    assert _failure(one, 101) == Failure(BY_NAME["unknown_handle"], f"op 1 negative: {text}", 100, 1)
    assert _failure(one, 102) == Failure(BY_NAME["unknown_handle"], f"op 2 add: {text}", 100, 2)
    told = [_failure(one, 200 + index) for index in range(3)]
    assert [failure.op_index for failure in told] == [0, 1, 2]
    assert [failure.text.split(":")[0] for failure in told] == ["op 0 negative", "op 1 negative", "op 2 add"]


def test_a_dependent_names_the_op_that_failed_first() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(PAIR, 100, 10, 999), segment(NEGATE, 200, 102))
    world.submit_next(one)
    world.submit_next(one)
    assert _failure(one, 200) == _failure(one, 102)


def test_an_input_that_fails_late_is_replaced_by_a_stand_in_of_the_programs_spec() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20, Spec(dtypes.uint8, (1,))))
    world.intake.fail(one, one.values[20], FAULT, Taken())
    world.take(one, segment(PAIR, 100, 10, 20, dying=(1,)))
    row = one.queue[0]
    world.intake.poison_from_inputs(row, Taken())
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
    assert one.values[100].state is ValueState.FAILED
    while one.queue:
        world.intake.drop(one.queue.popleft(), FAULT, Taken())
    one.complete(one.in_flight._replace(ops=0, segments=0))
    assert one.in_flight == NO_WORK


def test_what_a_segment_carries_is_not_looked_at_unless_it_has_the_inputs_of_its_program() -> None:
    world = World()
    one = world.session()
    world.take(one, Segment(SCALE, 100, (), (True,) * 7, (0,), ()))
    assert _failure(one, 100).text == "op 0 multiply: 0 inputs; the program has 1"


def test_unknown_foreign_and_freed_handles_get_one_and_the_same_answer() -> None:
    world = World()
    one, other = world.session("a"), world.session("b")
    world.take(other, upload(77))
    world.take(one, upload(78), Free((78,)), Fetch(1, 76), Fetch(2, 77), Fetch(3, 78))
    world.take(one, segment(NEGATE, 100, 76), segment(NEGATE, 101, 77), segment(NEGATE, 102, 78))
    told = {re.sub(r"\d+", "N", text) for _, text in answers(one).values()}
    told |= {re.sub(r"\d+", "N", _failure(one, handle).text) for handle in (100, 101, 102)}
    plain = "handle N names nothing in this session"
    assert told == {plain, f"op N negative: {plain}"}
    assert {case for case, _ in answers(one).values()} == {"unknown_handle"}


def _failure(one: Session, handle: int) -> Failure:
    failure = one.values[handle].failure
    assert failure is not None
    return failure


def test_a_program_beyond_the_memory_of_a_session_is_rejected_until_it_forgets_another() -> None:
    world = World()
    one = world.session()
    held_bytes = sum(entry.size_bytes for entry in one.programs.values())
    world.programs.bounds = world.programs.bounds._replace(session_bytes=held_bytes)
    for number, case in ((8, "quota_program"), (9, None)):
        taken = world.take(one, new(number, chain()))
        assert [failure.case.name for failure in taken.failures] == ([case] if case else [])
        if case:
            world.take(one, Forget(PAIR))


def test_a_session_that_ends_lets_go_of_its_programs() -> None:
    world = World()
    one = world.session()
    entries = [*one.programs.values()]
    world.intake.close(one, Taken())
    assert {entry.holders for entry in entries} == {0}
    world.programs.bounds = world.programs.bounds._replace(session_bytes=sum(entry.size_bytes for entry in entries))
    for entry in entries:
        world.programs.hold(one.session_id, entry)


def test_a_rejected_program_poisons_its_live_handles_and_the_session_lives() -> None:
    world = World()
    one = world.session()
    unknown_op = b"\x94\x91\x92\x06\x04\x90\x92\x92\xcd\xff\xff\x91\x00\x92\xcd\xff\xff\x91\x01\x91\x01"
    taken = world.take(one, NewProgram(9, False, unknown_op))
    assert [failure.case.name for failure in taken.failures] == ["unknown_op"]
    world.take(one, segment(9, 100, 10, dying=(0,)), segment(NEGATE, 200, 101), Fetch(1, 101))
    assert answers(one)[1][0] == "unknown_op"
    assert 100 not in one.values
    assert 10 not in one.values
    world.take(one, Forget(9))
    with pytest.raises(CaseError, match="unknown_program"):
        world.take(one, segment(9, 300, 11))


@pytest.mark.parametrize(
    ("entries", "case"),
    [
        ([segment(99, 100, 10)], "unknown_program"),
        ([Forget(99)], "unknown_program"),
        ([upload(10)], "reused_handle"),
        ([segment(NEGATE, 10, 11)], "reused_handle"),
        ([segment(PAIR, 9, 10, 11)], "reused_handle"),
        ([segment(NEGATE, 100, 10, dying=(1,))], "undecodable_frame"),
        ([upload(20)._replace(tensor=1)], "undecodable_frame"),
        ([segment(NEGATE, 100 + index, 10) for index in range(CREDIT.segments + 1)], "credit_overdrawn"),
    ],
)
def test_what_no_correct_client_sends_is_a_protocol_case(entries: list[Entry], case: str) -> None:
    world = World()
    one = world.session()
    with pytest.raises(CaseError, match=case):
        world.take(one, *entries)


def test_a_program_numbered_twice_is_a_protocol_case() -> None:
    world = World()
    one = world.session()
    with pytest.raises(CaseError, match="undecodable_frame"):
        world.take(one, new(NEGATE, chain()))


def test_program_bytes_that_are_no_program_are_a_protocol_case() -> None:
    world = World()
    with pytest.raises(CaseError, match="undecodable_frame"):
        world.take(world.session(), NewProgram(9, False, encode(chain())[:-1]))


# ---- uploads and quotas ----


def test_an_upload_with_other_bytes_than_declared_fails_and_its_credit_comes_back() -> None:
    world = World()
    one = world.session()
    taken = world.take(one, upload(20), Fetch(1, 20), tensors=[bytes(3)])
    assert answers(one)[1][0] == "upload_failed"
    assert (taken.writes, one.in_flight) == ([], NO_WORK)


def test_an_upload_beside_the_stream_takes_no_credit() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20, Spec(dtypes.uint8, (CREDIT.bytes * 2,))))
    assert one.in_flight == NO_WORK


@pytest.mark.parametrize("is_beside", [True, False])
def test_an_array_beyond_the_limit_is_refused_and_takes_nothing(is_beside: bool) -> None:
    world = World(Limits(array_bytes=64))
    one = world.session()
    before_bytes = one.live_bytes
    declare = upload_beside if is_beside else upload
    taken = world.take(one, declare(20, Spec(dtypes.uint8, (2**40,))), Fetch(1, 20))
    case, text = answers(one)[1]
    assert case == "quota_array_bytes"
    assert "limits.array_bytes = 64" in text
    assert (taken.declared, one.live_bytes) == ([], before_bytes)


def test_live_bytes_beyond_the_quota_are_refused_until_some_are_freed() -> None:
    world = World(Limits(array_bytes=SIZE_BYTES, live_bytes=4 * SIZE_BYTES))
    one = world.session()
    world.take(one, segment(NEGATE, 100, 10), segment(NEGATE, 101, 10), segment(NEGATE, 102, 10), upload(103))
    assert [_failure(one, handle).case.name for handle in (102, 103)] == ["quota_live_bytes"] * 2
    assert "limits.live_bytes" in _failure(one, 102).text
    world.take(one, Free((11,)), segment(NEGATE, 104, 10))
    assert one.values[104].failure is None


def test_handles_beyond_the_quota_are_refused_and_failures_have_a_bound_too() -> None:
    world = World(Limits(handles=4))
    one = world.session()
    world.take(one, *[segment(NEGATE, 100 + index, 10) for index in range(3)])
    assert _failure(one, 102).case.name == "quota_handles"
    for index in range(50):
        world.take(one, upload(200 + index))
    assert len(one.values) == 8


# ---- deaths ----


def test_a_freed_value_is_released_at_once_or_after_its_last_reader() -> None:
    world = World()
    one = world.session()
    assert [value.handle for value in world.take(one, Free((10,))).released] == [10]
    assert world.take(one, segment(NEGATE, 100, 11), Free((11,))).released == []
    assert 11 in one.values
    assert [value.handle for value in world.submit_next(one).released] == [11]


def test_dying_inputs_die_with_their_row() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(ADD, 100, 10, 10, dying=(0, 1)), segment(NEGATE, 200, 10))
    assert _failure(one, 200).case.name == "unknown_handle"
    assert [value.handle for value in world.submit_next(one).released] == [10]


def test_a_result_freed_before_it_exists_is_released_when_it_does() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(NEGATE, 100, 10), Free((100,)))
    assert [value.handle for value in world.submit_next(one).released] == [100]


def test_an_upload_freed_before_it_arrives_is_released_when_it_does() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20))
    value = one.values[20]
    world.take(one, Free((20,)))
    taken = Taken()
    world.intake.uploaded(one, value, taken)
    assert taken.released == [value]
    assert 20 not in one.values


def test_freeing_what_names_nothing_is_no_failure() -> None:
    world = World()
    one = world.session()
    taken = world.take(one, Free((999, 10, 10)))
    assert [value.handle for value in taken.released] == [10]


# ---- fetches ----


def test_a_ready_value_is_read_and_a_coming_one_when_it_is_ready() -> None:
    world = World()
    one = world.session()
    taken = world.take(one, Fetch(1, 10), segment(NEGATE, 100, 10), Fetch(2, 100))
    assert [fetching.fetch for fetching in taken.reads] == [1]
    assert [fetching.fetch for fetching in world.submit_next(one).reads] == [2]


def test_a_fetch_of_a_failed_value_is_answered_at_once() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(NEGATE, 100, 999), Fetch(1, 100))
    assert answers(one) == {1: ("unknown_handle", "op 0 negative: handle 999 names nothing in this session")}
    assert not one.fetches


def test_a_fetch_that_waits_is_answered_when_its_value_fails() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), Fetch(1, 20), Free((20,)))
    world.intake.fail(one, one.values[20], FAULT, Taken())
    assert answers(one) == {1: ("upload_failed", "stalled")}
    assert 20 not in one.values


def test_a_repeated_fetch_is_answered_once() -> None:
    world = World()
    one = world.session()
    taken = world.take(one, Fetch(1, 10), Fetch(1, 10), Fetch(2, 999), Fetch(2, 999))
    assert [fetching.fetch for fetching in taken.reads] == [1]
    assert list(answers(one)) == [2]
    world.take(one, Fetch(2, 10))
    assert len(one.answers) == 1


def test_a_fetch_keeps_a_freed_value_alive() -> None:
    world = World()
    one = world.session()
    taken = world.take(one, Fetch(1, 10), Free((10,)))
    assert taken.released == []
    world.intake.read(taken.reads[0], taken)
    assert [value.handle for value in taken.released] == [10]


def test_an_abandoned_fetch_is_not_answered_and_holds_nothing() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(NEGATE, 100, 10), Fetch(1, 100), Free((100,)), Abandon(1), Abandon(2))
    taken = world.submit_next(one)
    assert (taken.reads, one.fetches, one.answers) == ([], {}, [])
    assert [value.handle for value in taken.released] == [100]


@pytest.mark.parametrize("handle", [10, 20])
def test_abandoning_a_fetch_takes_no_longer_for_those_that_wait_beside_it(handle: int) -> None:
    world = World()
    one = world.session()
    fetches = range(100_000)
    taken = world.take(one, upload_beside(20), *[Fetch(fetch, handle) for fetch in fetches])
    one.reads.update((fetching.fetch, fetching) for fetching in taken.reads)  # of 10, which is ready
    started = time.process_time()
    world.take(one, *[Abandon(fetch) for fetch in reversed(fetches)])
    assert time.process_time() - started < 5.0
    assert (one.fetches, len(one.reads), one.values[handle].readers) == ({}, 0, 0)


def test_too_many_fetches_that_nobody_takes_are_a_protocol_case() -> None:
    world = World(Limits(handles=4))
    one = world.session()
    world.take(one, *[Fetch(number, 999) for number in range(4)])
    with pytest.raises(CaseError, match="slow_reader"):
        world.take(one, Fetch(4, 10))


# ---- cancel, forget, close ----


def test_cancel_gives_up_what_waits_and_leaves_what_comes_after() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), segment(NEGATE, 100, 20), segment(NEGATE, 200, 10), Fetch(1, 200))
    taken = world.take(one, Free((10,)), Cancel(), segment(NEGATE, 300, 11), segment(NEGATE, 400, 200))
    assert answers(one)[1][0] == "cancelled"
    assert [value.handle for value in taken.released] == [10]
    assert bases(one.queue) == [300, 400]
    world.intake.uploaded(one, one.values[20], Taken())
    assert bases(one.queue) == [300, 400]
    assert one.in_flight.segments == 2


def test_cancel_leaves_nothing_of_what_waited_with_the_uploads_it_waited_for() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), segment(NEGATE, 100, 20), segment(ADD, 200, 100, 20))
    world.take(one, Cancel(), Free((100, 200)))
    assert set(one.values) == {10, 11, 20}
    assert not one.values[20].waiting


def test_a_forgotten_number_may_be_given_again() -> None:
    world = World()
    one = world.session()
    entry = one.programs[NEGATE]
    world.take(one, Forget(NEGATE))
    assert entry.holders == 0
    world.take(one, new(NEGATE, addition()))
    assert one.programs[NEGATE] is one.programs[ADD]


def test_more_programs_than_the_limit_is_a_protocol_case_that_names_the_setting() -> None:
    world = World(Limits(programs=len(PROGRAMS)))
    one = world.session()
    with pytest.raises(CaseError, match=r"limits\.programs"):
        world.take(one, new(9, chain()))


def test_an_answer_beside_the_stream_is_not_told_twice_before_it_is_acknowledged() -> None:
    world = World()
    one = world.session()
    one.begin_read(1, INLINE_BYTES + 1)
    one.answer(1, memoryview(bytes(INLINE_BYTES + 1)))
    world.take(one, Fetch(1, 10), Fetch(1, 10))
    assert len(one.answers) == 1
    number, _ = one.take_answers(1 << 20)
    world.take(one, Fetch(1, 10))
    assert one.answers == []
    one.acknowledge(number)
    world.take(one, Fetch(1, 10), Fetch(1, 10))
    assert len(one.answers) == 1


def test_a_closed_session_is_gone_without_the_garbage_collector() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 20), Fetch(2, 10), segment(NEGATE, 200, 10))
    one.reads.update(one.fetches)
    one.begin_read(3, INLINE_BYTES + 1)
    one.answer(3, memoryview(bytes(INLINE_BYTES + 1)))
    held = weakref.ref(one)  # each of its rows and fetches holds it
    gc.disable()
    try:
        world.intake.close(one, Taken())
        del one
        assert held() is None
    finally:
        gc.enable()


def test_closing_releases_everything() -> None:
    world = World()
    one = world.session()
    entries = list(one.programs.values())
    world.take(one, upload_beside(20), segment(NEGATE, 100, 20), segment(NEGATE, 200, 10), Fetch(1, 200), Free((11,)))
    world.submit_next(one)
    taken = Taken()
    world.intake.close(one, taken)
    assert {value.handle for value in taken.released} == {10, 200}
    assert (one.values, one.programs, one.live_bytes, len(one.queue), len(one.held_back)) == ({}, {}, 0, 0, 0)
    assert [entry.holders for entry in entries] == [0] * len(entries)
