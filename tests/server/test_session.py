"""The session's states, frame numbers, owed answers and credit, by events alone."""

import pytest

from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import INLINE_BYTES
from fusewire_server.session import TRANSITIONS, Session, SessionEvent, SessionState
from fusewire_server.work import NO_WORK, Amount, Answer, Failure
from tests.server.parts import CREDIT, UNREAD_BYTES, session

OPEN, DETACHED, CLOSED = SessionState.OPEN, SessionState.DETACHED, SessionState.CLOSED
DISCONNECT, RESUME, END = SessionEvent.DISCONNECT, SessionEvent.RESUME, SessionEvent.END
MOST = 1 << 20
FAILURE = Failure(BY_NAME["cancelled"], "given up", 0, 0)


def value(fetch: int, size_bytes: int = 4) -> Answer:
    return Answer(fetch, memoryview(bytes(size_bytes)), None)


def answered(*answers: Answer) -> Session:
    one = session()
    for answer in answers:
        one.begin_read(answer.fetch, len(answer.data or b""))
        one.answer(answer)
    return one


def fetches(taken: tuple[int, list[Answer]]) -> tuple[int, list[int]]:
    number, answers = taken
    return number, [answer.fetch for answer in answers]


# ---- states ----


@pytest.mark.parametrize(
    ("state", "event", "following"),
    [
        (OPEN, DISCONNECT, DETACHED),
        (OPEN, RESUME, OPEN),
        (OPEN, END, CLOSED),
        (DETACHED, DISCONNECT, None),
        (DETACHED, RESUME, OPEN),
        (DETACHED, END, CLOSED),
        (CLOSED, DISCONNECT, None),
        (CLOSED, RESUME, None),
        (CLOSED, END, None),
    ],
)
def test_each_event_leads_where_the_table_says(
    state: SessionState, event: SessionEvent, following: SessionState | None
) -> None:
    one = session()
    one.state = state
    if following is None:
        with pytest.raises(CaseError, match="out_of_turn"):
            one.on(event)
    else:
        one.on(event)
    assert one.state is (following or state)


def test_the_table_holds_no_other_transitions() -> None:
    assert len(TRANSITIONS) == 5


# ---- frames ----


def test_the_next_frame_is_applied_and_one_applied_before_is_dropped() -> None:
    one = session()
    assert [one.accept(1), one.accept(2), one.accept(1), one.accept(2), one.accept(3)] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert one.applied_frame == 3


@pytest.mark.parametrize("number", [2, 3, 2**63])
def test_a_gap_in_frame_numbers_is_a_protocol_case_and_changes_nothing(number: int) -> None:
    one = session()
    with pytest.raises(CaseError, match="frame_gap"):
        one.accept(number)
    assert one.accept(1)


@pytest.mark.parametrize("state", [DETACHED, CLOSED])
def test_a_session_without_a_stream_takes_no_frames(state: SessionState) -> None:
    one = session()
    one.state = state
    with pytest.raises(CaseError, match="out_of_turn"):
        one.accept(1)


# ---- answers ----


def test_answers_go_out_once_in_numbered_frames() -> None:
    one = answered(value(7), value(8))
    assert fetches(one.take_answers(MOST)) == (1, [7, 8])
    assert one.take_answers(MOST) == (0, [])
    one.answer(value(9))
    assert fetches(one.take_answers(MOST)) == (2, [9])


def test_a_frame_takes_no_more_answers_than_a_message_holds() -> None:
    one = answered(*[value(fetch, 1000) for fetch in range(5)])
    frames = []
    while one.answers:
        frames.append(fetches(one.take_answers(2000)))
    assert frames == [(1, [0, 1]), (2, [2, 3]), (3, [4])]


def test_what_travels_beside_takes_no_room_in_a_frame() -> None:
    one = answered(*[value(fetch, INLINE_BYTES + 1) for fetch in range(5)])
    assert fetches(one.take_answers(2000)) == (1, [0, 1, 2, 3, 4])


def test_an_acknowledged_answer_is_forgotten() -> None:
    one = answered(value(7), value(8))
    one.take_answers(MOST)
    one.acknowledge(1)
    assert (one.unread_bytes, one.untaken, list(one.unacknowledged)) == (0, {}, [])


def test_bytes_beside_the_stream_outlive_the_acknowledgement_of_their_frame() -> None:
    one = answered(value(7, INLINE_BYTES + 1))
    one.take_answers(MOST)
    one.acknowledge(1)
    assert list(one.beside) == [7]
    one.forget_answer(7)
    assert (one.beside, one.unread_bytes) == ({}, 0)


def test_acknowledging_a_frame_that_was_never_sent_is_a_protocol_case() -> None:
    one = answered(value(7))
    one.take_answers(MOST)
    with pytest.raises(CaseError, match="undecodable_frame"):
        one.acknowledge(2)
    assert len(one.unacknowledged) == 1


def test_resuming_owes_unseen_answers_again_under_the_number_that_the_client_expects() -> None:
    one = answered(value(7))
    one.take_answers(MOST)
    one.answer(value(8))
    one.take_answers(MOST)
    one.answer(Answer(9, None, FAILURE))
    one.on(DISCONNECT)
    one.resume(acknowledged=1)
    assert (one.state, one.epoch) == (OPEN, 2)
    assert fetches(one.take_answers(MOST)) == (2, [8, 9])


def test_resuming_with_an_impossible_acknowledgement_changes_nothing() -> None:
    one = answered(value(7))
    one.on(DISCONNECT)
    with pytest.raises(CaseError, match="undecodable_frame"):
        one.resume(acknowledged=1)
    assert (one.state, one.epoch) == (DETACHED, 1)


# ---- what the client has not taken ----


def test_values_stay_on_the_device_while_the_client_has_too_much_to_take() -> None:
    one = session()
    one.begin_read(1, UNREAD_BYTES // 2)
    assert one.may_read(UNREAD_BYTES // 2)
    assert not one.may_read(UNREAD_BYTES // 2 + 1)
    one.forget_answer(1)
    assert one.may_read(UNREAD_BYTES * 2)


# ---- credit ----


def test_work_within_the_credit_is_admitted_and_counted() -> None:
    one = session()
    for _ in range(CREDIT.segments):
        one.admit(Amount(1, 1, 1))
    one.complete(Amount(2, 2, 2))
    assert one.in_flight == Amount(6, 6, 6)


@pytest.mark.parametrize("more", [Amount(CREDIT.ops, 0, 0), Amount(0, CREDIT.bytes, 0), Amount(0, 0, CREDIT.segments)])
def test_more_than_the_credit_is_a_protocol_case_and_changes_nothing(more: Amount) -> None:
    one = session()
    one.admit(Amount(1, 1, 1))
    with pytest.raises(CaseError, match="credit_overdrawn"):
        one.admit(more)
    assert one.in_flight == Amount(1, 1, 1)


def test_with_nothing_in_flight_one_segment_of_any_size_is_admitted() -> None:
    huge = Amount(CREDIT.ops * 9, CREDIT.bytes * 9, 1)
    one = session()
    one.admit(huge)
    with pytest.raises(CaseError, match="credit_overdrawn"):
        one.admit(Amount(1, 1, 1))
    one.complete(huge)
    assert one.in_flight == NO_WORK
    one.admit(huge)


def test_uploads_in_flight_count_too() -> None:
    one = session()
    one.admit(Amount(0, CREDIT.bytes, 0))
    with pytest.raises(CaseError, match="credit_overdrawn"):
        one.admit(Amount(0, 1, 0))
