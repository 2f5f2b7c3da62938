"""The session's states, frame numbers, owed answers and credit, by events alone."""

import pytest

from fusewire_protos.credit import NO_WORK, Amount
from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import INLINE_BYTES
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.session import TRANSITIONS, Session, SessionEvent, SessionState
from fusewire_server.sessions.tables.answers import MOST_DOWNLOADS, Answer
from fusewire_server.sessions.tables.salted_table import SaltedTable
from tests.server.parts import CREDIT, UNREAD_BYTES, session

OPEN, DETACHED, CLOSED = SessionState.OPEN, SessionState.DETACHED, SessionState.CLOSED
DISCONNECT, RESUME, END = SessionEvent.DISCONNECT, SessionEvent.RESUME, SessionEvent.END
MOST = 1 << 20
LARGE_BYTES = INLINE_BYTES + 1
FAILURE = Failure(BY_NAME["cancelled"], "given up", 0, 0)


def answer(one: Session, fetch: int, size_bytes: int = 4) -> None:
    """A value of that size has come to the host."""
    one.answers.begin_read(fetch, size_bytes)
    one.answer(fetch, memoryview(bytes(size_bytes)))


def answered(*fetches: int, size_bytes: int = 4) -> Session:
    one = session()
    for fetch in fetches:
        answer(one, fetch, size_bytes)
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
    one = answered(7, 8)
    assert fetches(one.answers.take(MOST)) == (1, [7, 8])
    assert one.answers.take(MOST) == (0, [])
    answer(one, 9)
    assert fetches(one.answers.take(MOST)) == (2, [9])


def test_a_frame_takes_no_more_answers_than_a_message_holds() -> None:
    one = answered(*range(5), size_bytes=1000)
    frames = []
    while one.answers.unsent:
        frames.append(fetches(one.answers.take(2000)))
    assert frames == [(1, [0, 1]), (2, [2, 3]), (3, [4])]


def test_what_travels_beside_takes_no_room_in_a_frame() -> None:
    one = answered(*range(5), size_bytes=LARGE_BYTES)
    assert fetches(one.answers.take(2000)) == (1, [0, 1, 2, 3, 4])


def test_the_texts_of_failures_take_room_in_a_frame() -> None:
    one = session()
    for fetch in range(5):
        one.answer_failure(fetch, Failure(BY_NAME["bad_shape"], "x" * 1000, 0, 0))
    frames = []
    while one.answers.unsent:
        frames.append(fetches(one.answers.take(2000)))
    assert frames == [(1, [0, 1]), (2, [2, 3]), (3, [4])]


def test_an_acknowledged_answer_is_forgotten() -> None:
    one = answered(7, 8)
    one.answers.take(MOST)
    one.answers.acknowledge(1)
    assert (one.answers.unread_bytes, one.answers.untaken, list(one.answers.unacknowledged)) == (0, SaltedTable(), [])


def test_bytes_beside_the_stream_outlive_the_acknowledgement_of_their_frame() -> None:
    one = answered(7, size_bytes=LARGE_BYTES)
    one.answers.take(MOST)
    one.answers.acknowledge(1)
    assert (list(one.answers.beside), one.answers.unread_bytes) == ([7], LARGE_BYTES)
    download(one, 7)
    assert (one.answers.beside, one.answers.unread_bytes) == (SaltedTable(), 0)


def download(one: Session, fetch: int) -> None:
    beside = one.answers.begin_download(fetch)
    assert beside is not None
    one.answers.end_download(fetch, beside)
    one.answers.forget_beside(fetch)


def test_an_answer_beside_the_stream_holds_its_bytes_once_and_outside_the_frames() -> None:
    one = answered(7, size_bytes=LARGE_BYTES)
    _, (answer,) = one.answers.take(MOST)
    assert (answer.data, answer.beside_bytes) == (None, LARGE_BYTES)
    one.answers.forget_beside(7)
    assert (one.answers.beside, one.answers.unread_bytes, len(one.answers.unacknowledged)) == (SaltedTable(), 0, 1)


def test_an_abandoned_answer_inside_a_frame_counts_until_the_frame_is_acknowledged() -> None:
    one = answered(7)
    one.answers.take(MOST)
    one.answers.forget_beside(7)
    assert one.answers.unread_bytes == 4
    one.answers.acknowledge(1)
    assert one.answers.unread_bytes == 0


def test_an_abandoned_answer_counts_while_a_call_carries_it() -> None:
    one = answered(7, size_bytes=LARGE_BYTES)
    beside = one.answers.begin_download(7)
    assert beside is not None
    one.answers.forget_beside(7)
    assert one.answers.unread_bytes == LARGE_BYTES
    assert one.answers.begin_download(7) is None
    one.answers.end_download(7, beside)
    assert (one.answers.beside, one.answers.unread_bytes) == (SaltedTable(), 0)


def test_a_number_may_be_used_again_while_a_call_still_carries_its_last_answer() -> None:
    one = answered(7, size_bytes=LARGE_BYTES)
    first = one.answers.begin_download(7)
    assert first is not None
    one.answers.forget_beside(7)
    answer(one, 7, LARGE_BYTES)
    one.answers.end_download(7, first)
    assert (list(one.answers.beside), one.answers.unread_bytes) == ([7], LARGE_BYTES)
    download(one, 7)
    assert (one.answers.beside, one.answers.unread_bytes) == (SaltedTable(), 0)


def test_a_download_may_be_repeated_until_the_client_says_that_it_has_the_value() -> None:
    one = answered(7, size_bytes=LARGE_BYTES)
    beside = one.answers.begin_download(7)
    assert beside is not None
    one.answers.end_download(7, beside)
    download(one, 7)
    assert one.answers.beside == {}


def test_only_so_many_calls_carry_one_answer_at_once() -> None:
    one = answered(7, size_bytes=LARGE_BYTES)
    assert None not in [one.answers.begin_download(7) for _ in range(MOST_DOWNLOADS)]
    with pytest.raises(CaseError, match=f"too_many_calls: {MOST_DOWNLOADS} calls carry the answer to fetch 7"):
        one.answers.begin_download(7)


def test_an_answer_beside_the_stream_is_told_again_once_its_frame_was_acknowledged() -> None:
    one = answered(7, size_bytes=LARGE_BYTES)
    one.answers.take(MOST)
    one.answers.acknowledge(1)
    assert (one.answers.tell_again(7), one.answers.tell_again(8)) == (True, False)
    assert fetches(one.answers.take(MOST)) == (2, [7])
    one.answers.acknowledge(2)
    assert (one.answers.unread_bytes, one.answers.untaken) == (LARGE_BYTES, SaltedTable())


def test_acknowledging_a_frame_that_was_never_sent_is_a_protocol_case() -> None:
    one = answered(7)
    one.answers.take(MOST)
    with pytest.raises(CaseError, match="undecodable_frame"):
        one.answers.acknowledge(2)
    assert len(one.answers.unacknowledged) == 1


def test_resuming_owes_unseen_answers_again_under_the_number_that_the_client_expects() -> None:
    one = answered(7)
    one.answers.take(MOST)
    answer(one, 8)
    one.answers.take(MOST)
    one.answer_failure(9, FAILURE)
    one.on(DISCONNECT)
    one.resume(acknowledged=1)
    assert (one.state, one.epoch) == (OPEN, 2)
    assert [fetches(one.answers.take(MOST)) for _ in range(2)] == [(2, [8]), (3, [9])]


def test_a_frame_keeps_its_number_and_its_answers_whatever_streams_carry_it() -> None:
    """A stream that is older than it seems must not change what a newer one has brought."""
    one = answered(7)
    one.answers.take(MOST)
    answer(one, 8)
    one.resume(acknowledged=0)
    one.resume(acknowledged=1)
    assert fetches(one.answers.take(MOST)) == (2, [8])
    one.resume(acknowledged=0)
    answer(one, 9)
    one.resume(acknowledged=2)
    assert fetches(one.answers.take(MOST)) == (3, [9])
    assert not one.answers.are_owed


def test_resuming_with_an_impossible_acknowledgement_changes_nothing() -> None:
    one = answered(7)
    one.on(DISCONNECT)
    with pytest.raises(CaseError, match="undecodable_frame"):
        one.resume(acknowledged=1)
    assert (one.state, one.epoch) == (DETACHED, 1)


# ---- what the client has not taken ----


def test_values_stay_on_the_device_while_the_client_has_too_much_to_take() -> None:
    one = session()
    one.answers.begin_read(1, UNREAD_BYTES // 2)
    assert one.answers.may_read(UNREAD_BYTES // 2)
    assert not one.answers.may_read(UNREAD_BYTES // 2 + 1)
    one.drop_read(1)
    assert one.answers.may_read(UNREAD_BYTES * 2)


# ---- credit ----


def test_work_within_the_credit_is_admitted_and_counted() -> None:
    one = session()
    for _ in range(CREDIT.segments):
        one.take_credit(Amount(1, 1, 1))
    one.complete(Amount(2, 2, 2))
    assert one.in_flight == Amount(6, 6, 6)


@pytest.mark.parametrize(
    ("more", "setting"),
    [
        (Amount(CREDIT.ops, 0, 0), f"limits.credit_ops = {CREDIT.ops}"),
        (Amount(0, CREDIT.bytes, 0), f"limits.credit_bytes = {CREDIT.bytes}"),
        (Amount(0, 0, CREDIT.segments), f"limits.credit_segments = {CREDIT.segments}"),
    ],
)
def test_more_than_the_credit_is_a_protocol_case_that_names_the_setting_and_changes_nothing(
    more: Amount, setting: str
) -> None:
    one = session()
    one.take_credit(Amount(1, 1, 1))
    with pytest.raises(CaseError, match=f"credit_overdrawn.*in flight; {setting}$"):
        one.take_credit(more)
    assert one.in_flight == Amount(1, 1, 1)


def test_with_nothing_in_flight_one_segment_of_any_size_is_admitted() -> None:
    huge = Amount(CREDIT.ops * 9, CREDIT.bytes * 9, 1)
    one = session()
    one.take_credit(huge)
    with pytest.raises(CaseError, match="credit_overdrawn"):
        one.take_credit(Amount(1, 1, 1))
    one.complete(huge)
    assert one.in_flight == NO_WORK
    one.take_credit(huge)


def test_uploads_in_flight_count_too() -> None:
    one = session()
    one.take_credit(Amount(0, CREDIT.bytes, 0))
    with pytest.raises(CaseError, match="credit_overdrawn"):
        one.take_credit(Amount(0, 1, 0))


@pytest.mark.parametrize(
    ("work", "has_used_up"),
    [
        (Amount(CREDIT.ops // 2, 1, 1), False),
        (Amount(CREDIT.ops // 2 + 1, 1, 1), True),
        (Amount(1, CREDIT.bytes // 2 + 1, 1), True),
        (Amount(1, 1, CREDIT.segments // 2 + 1), True),
    ],
)
def test_credit_is_used_up_when_another_segment_like_the_last_does_not_fit(work: Amount, *, has_used_up: bool) -> None:
    one = session()
    one.take_credit(work)
    assert (one.has_used_up_credit, one.credit_used_up) == (has_used_up, int(has_used_up))


@pytest.mark.parametrize(
    ("completed", "is_owed"),
    [
        (NO_WORK, False),
        (Amount(CREDIT.ops // 4 - 1, 0, 1), False),
        (Amount(CREDIT.ops // 4, 0, 1), True),
        (Amount(0, CREDIT.bytes // 4, 0), True),
    ],
)
def test_a_client_is_told_of_credit_when_a_quarter_has_come_back(completed: Amount, *, is_owed: bool) -> None:
    one = session()
    one.take_credit(Amount(CREDIT.ops, CREDIT.bytes, 2))
    one.complete(completed)
    assert one.owes_credit(NO_WORK) is is_owed
    assert not one.owes_credit(one.completed)


def test_a_client_is_told_of_any_credit_when_nothing_is_in_flight() -> None:
    one = session()
    one.take_credit(Amount(1, 1, 1))
    one.complete(Amount(1, 1, 1))
    assert one.owes_credit(NO_WORK)


def test_credit_is_used_up_until_the_device_completes_some_work() -> None:
    one = session()
    for _ in range(CREDIT.segments):
        one.take_credit(Amount(1, 1, 1))
    assert one.has_used_up_credit
    one.complete(Amount(1, 1, 1))
    assert (one.has_used_up_credit, one.credit_used_up) == (False, 1)
