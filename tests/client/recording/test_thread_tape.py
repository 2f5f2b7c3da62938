"""The tape of a thread: what is on it, what was dropped, and which handles died."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fusewire._recording.integer_scans import places_of_signatures
from fusewire._recording.places import OPS_WITH_PLACES, places
from fusewire._recording.recorded_ops import ThreadTape
from tests.client.loops import H
from tests.client.peer import connect

WAIT_S = 20.0
_SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()


@pytest.fixture
def tape() -> ThreadTape:
    """Two ops with a scalar each, and one without."""
    x = connect(is_manual=True).session.array(H)
    y = x * 2.0
    z = y + 0.5
    _ = z + y
    recorder: ThreadTape = x._recorder
    return recorder


def first_of(tape: ThreadTape) -> int:
    return tape.next_number - tape.records_kept


def test_records_stand_one_behind_the_other(tape: ThreadTape) -> None:
    first = first_of(tape)
    flat = tape.between(first, tape.next_number)
    assert places_of_signatures(flat).tolist() == [0, 3, 6]
    assert flat[[4, 5, 7, 8]].tolist() == [first, -2, first + 1, first]
    assert tape.between(first + 1, first + 2).tolist() == flat[3:6].tolist()
    assert tape.between(first, first).tolist() == []


def test_ops_that_are_not_on_the_tape_are_refused(tape: ThreadTape) -> None:
    first, end = first_of(tape), tape.next_number
    tape.trim(first + 1, first + 1)
    for absent in [(first, end), (first + 1, end + 1), (first + 2, first + 1)]:
        with pytest.raises(IndexError, match="not all on the tape"):
            tape.between(*absent)


def test_values_are_found_by_the_integers_that_refer_to_them(tape: ThreadTape) -> None:
    first = first_of(tape)
    assert tape.values_of(tape.between(first, tape.next_number)) == [2.0, 0.5]
    assert tape.values_of(tape.between(first + 2, tape.next_number)) == []


def test_a_trimmed_tape_has_the_numbers_and_values_of_what_is_left(tape: ThreadTape) -> None:
    first, end = first_of(tape), tape.next_number
    left = tape.between(first + 1, end)
    tape.trim(first + 1, first + 1)
    assert (tape.records_kept, tape.next_number) == (2, end)
    assert tape.between(first + 1, end).tolist() == left.tolist()
    assert tape.values_of(left) == [0.5]


def test_nothing_is_trimmed_twice(tape: ThreadTape) -> None:
    first = first_of(tape)
    tape.trim(first + 1, first + 1)
    tape.trim(first, first + 1)
    assert tape.records_kept == 2


def test_ops_are_passed_over(tape: ThreadTape) -> None:
    end = tape.next_number
    tape.drop_all()
    assert (tape.records_kept, tape.next_number) == (0, end)


def test_deaths_are_taken_in_order(tape: ThreadTape) -> None:
    tape.take_deaths(tape.deaths)
    for handle in (7, 5, 6):
        tape.note_death(handle)
    assert tape.take_deaths(2).tolist() == [7, 5]
    assert tape.deaths == 1
    assert tape.take_deaths(1).tolist() == [6]


def lines_of(tape: ThreadTape, first: int, end: int) -> list[int | None]:
    found = [places.find(tape.place_of_op(number)) for number in range(first, end)]
    lines = [None if place is None else place.source_line() for place in found]
    return [None if line is None else line.line for line in lines]


def test_each_op_has_the_place_that_recorded_it(tape: ThreadTape) -> None:
    first, end = first_of(tape), tape.next_number
    begins = next(line for line, text in enumerate(_SOURCE, 1) if "y = x * 2.0" in text)
    assert lines_of(tape, first, end) == [begins, begins + 1, begins + 2]
    assert lines_of(tape, first - 1, first) == lines_of(tape, end, end + 1) == [None]


def test_an_op_keeps_its_place_when_its_record_is_dropped(tape: ThreadTape) -> None:
    first, end = first_of(tape), tape.next_number
    before = lines_of(tape, first, end)
    tape.trim(end, end)
    tape.drop_all()
    assert lines_of(tape, first, end) == before


def test_the_places_of_ops_may_be_given(tape: ThreadTape) -> None:
    first, end = first_of(tape), tape.next_number
    lines = lines_of(tape, first, end)
    tape.put_places(first, [tape.place_of_op(first + 1), tape.place_of_op(first)])
    assert lines_of(tape, first, end) == [lines[1], lines[0], lines[2]]


def test_only_the_last_ops_have_places() -> None:
    x = connect(is_manual=True).session.array(H)
    tape = x._recorder
    tape.begin_body()  # so that no op is sent
    first = tape.next_number
    for _ in range(OPS_WITH_PLACES + 1):
        _ = -x
    assert [line is None for line in lines_of(tape, first, first + 3)] == [True, False, False]
    for _ in range(OPS_WITH_PLACES):
        _ = -x
    assert lines_of(tape, first, first + 3) == [None] * 3


def test_a_tape_that_threads_share_is_of_one_thread_at_a_time() -> None:
    tape = ThreadTape(0, 1, 1)
    assert tape.take() is True
    assert tape.take() is None
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(tape.take).result(WAIT_S) is False
        tape.release()
        assert pool.submit(tape.take).result(WAIT_S) is True
    assert tape.take() is False
