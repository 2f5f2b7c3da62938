"""What the entries of frames come to: rows, programs, uploads; and what no correct client sends."""

from __future__ import annotations

import gc
import weakref

import pytest

from fusewire_protos.credit import NO_WORK
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES, MAX_HANDLE, Cancel, Entry, Fetch, Forget, Free, NewProgram
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.codec import encode
from fusewire_server.config.config import Limits
from fusewire_server.sessions import rows
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.entries.frame import Arrival, Item
from fusewire_server.sessions.rows import bring_upload
from fusewire_server.sessions.session import ValueState
from fusewire_server.sessions.tables.salted_table import SaltedTable
from fusewire_server.sessions.values import forget_ended
from tests.server.parts import CREDIT, addition, chain, new, segment, upload, upload_beside
from tests.server.tables import ADD, NEGATE, PAIR, PROGRAMS, World, answers, bases


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
    effects = world.take(one, segment(NEGATE, 100, 10))
    entry = one.programs[NEGATE]
    assert (entry.uses, effects.to_plan) == (1, [entry])


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
    effects = Effects()
    bring_upload(one, one.values[20], effects.reads, effects.released)
    assert bases(one.queue) == [200, 400, 100, 300]
    assert not one.held_back


def test_a_row_that_waits_for_two_uploads_goes_on_after_both() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), upload_beside(21), segment(ADD, 100, 20, 21), segment(ADD, 200, 21, 21))
    bring_upload(one, one.values[21], [], [])
    assert bases(one.queue) == [200]
    bring_upload(one, one.values[20], [], [])
    assert bases(one.queue) == [200, 100]


def test_two_held_back_rows_may_have_the_same_base() -> None:
    world = World()
    one = world.session()
    first, second = chain(("abs", "sign"), live=(0,)), chain(("abs", "sign"), live=(1,))
    world.take(one, new(8, first), new(9, second))
    world.take(one, upload_beside(20), upload_beside(21), segment(8, 100, 20), segment(9, 100, 21))
    bring_upload(one, one.values[20], [], [])
    assert [row.inputs[0].handle for row in one.queue] == [20]
    bring_upload(one, one.values[21], [], [])
    assert [row.inputs[0].handle for row in one.queue] == [20, 21]


def test_a_chain_of_held_back_rows_may_be_long() -> None:
    world = World(Limits(credit_segments=10_000))
    one = world.session()
    one.credit = CREDIT._replace(ops=10_000, segments=10_000)
    chained = [segment(NEGATE, 1000 + index, 999 + index) for index in range(2000)]
    world.take(one, upload_beside(999), *chained)
    bring_upload(one, one.values[999], [], [])
    assert bases(one.queue) == [1000 + index for index in range(2000)]


def test_an_upload_with_other_bytes_than_declared_fails_and_its_credit_comes_back() -> None:
    world = World()
    one = world.session()
    effects = world.take(one, upload(20), Fetch(1, 20), tensors=[bytes(3)])
    assert answers(one)[1][0] == "upload_failed"
    assert (effects.writes, one.in_flight) == ([], NO_WORK)


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
    effects = world.take(one, declare(20, Spec(dtypes.uint8, (2**40,))), Fetch(1, 20))
    case, text = answers(one)[1]
    assert case == "quota_array_bytes"
    assert "limits.array_bytes = 64" in text
    assert (effects.declared, one.live_bytes) == ([], before_bytes)


def test_a_program_beyond_the_memory_of_a_session_is_rejected_until_it_forgets_another() -> None:
    world = World()
    one = world.session()
    held_bytes = sum(entry.size_bytes for entry in one.programs.values())
    world.programs.bounds = world.programs.bounds._replace(session_bytes=held_bytes)
    for number, case in ((8, "quota_program"), (9, None)):
        effects = world.take(one, new(number, chain()))
        assert [failure.case.name for failure in effects.failures] == ([case] if case else [])
        if case:
            world.take(one, Forget(PAIR))


def test_a_session_that_ends_lets_go_of_its_programs() -> None:
    world = World()
    one = world.session()
    entries = [*one.programs.values()]
    world.intake.close(one)
    assert {entry.holders for entry in entries} == {0}
    world.programs.bounds = world.programs.bounds._replace(session_bytes=sum(entry.size_bytes for entry in entries))
    for entry in entries:
        world.programs.hold(one.session_id, entry)


@pytest.mark.parametrize(
    ("entries", "case"),
    [
        ([segment(99, 100, 10)], "unknown_program"),
        ([Forget(99)], "unknown_program"),
        ([upload(10)], "reused_handle"),
        ([segment(NEGATE, 10, 11)], "reused_handle"),
        ([segment(PAIR, 9, 10, 11)], "reused_handle"),
        ([segment(NEGATE, 100, 10, dying=(1,))], "undecodable_frame"),
        ([segment(PAIR, MAX_HANDLE, 10, 11)], "undecodable_frame"),
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


def test_cancel_gives_up_what_waits_and_leaves_what_comes_after() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), segment(NEGATE, 100, 20), segment(NEGATE, 200, 10), Fetch(1, 200))
    effects = world.take(one, Free((10,)), Cancel(), segment(NEGATE, 300, 11), segment(NEGATE, 400, 200))
    assert answers(one)[1][0] == "cancelled"
    assert [failure.case.name for failure in effects.failures] == ["cancelled", "cancelled"]
    assert [value.handle for value in effects.released] == [10]
    assert bases(one.queue) == [300, 400]
    bring_upload(one, one.values[20], [], [])
    assert bases(one.queue) == [300, 400]
    assert one.in_flight.segments == 2


def test_a_step_of_a_cancel_fails_a_bounded_number_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_CANCELLED", 1)
    world = World()
    one = world.session()
    world.take(one, segment(PAIR, 100, 10, 11), segment(NEGATE, 200, 10))
    failed = []
    left: Item | None = Cancel()
    while left is not None:
        left = world.intake.take(one, [left], Arrival((), 0)).left
        failed.append(sum(value.state is ValueState.FAILED for value in one.values.values()))
    assert failed == [*range(1, len(failed) + 1)]
    assert len(failed) >= 3
    assert one.in_flight == (0, 0, 0)


def test_a_session_that_ends_while_rows_are_cancelled_gives_back_what_they_hold() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), segment(NEGATE, 100, 20))
    assert world.intake.take(one, [Cancel()], Arrival((), 0)).left == Cancel()
    assert set(world.intake.close(one)) == {10, 11, 20, 100}
    assert not one.cancelled


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


def test_a_closed_session_is_gone_without_the_garbage_collector() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 20), Fetch(2, 10), segment(NEGATE, 200, 10))
    one.reads.update(one.fetches)
    one.answers.begin_read(3, INLINE_BYTES + 1)
    one.answer(3, memoryview(bytes(INLINE_BYTES + 1)))
    held = weakref.ref(one.queue)  # by it alone; each of its rows and fetches holds the session
    gc.disable()
    try:
        values = world.intake.close(one)
        forget_ended(values, [*values.items()])
        del one
        assert held() is None
    finally:
        gc.enable()


def test_closing_leaves_nothing_but_the_values_that_are_to_be_released() -> None:
    world = World()
    one = world.session()
    entries = list(one.programs.values())
    world.take(one, upload_beside(20), segment(NEGATE, 100, 20), segment(NEGATE, 200, 10), Fetch(1, 200), Free((11,)))
    world.submit_next(one)
    assert world.intake.close(one).keys() == {10, 20, 100, 200}
    assert (one.values, one.large, one.programs, one.live_bytes) == (SaltedTable(), SaltedTable(), {}, 0)
    assert (len(one.queue), len(one.held_back)) == (0, 0)
    assert [entry.holders for entry in entries] == [0] * len(entries)
