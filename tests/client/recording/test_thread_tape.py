"""The tape of a thread, whichever recorder is in use: what is on it, what was dropped, and which handles died."""

from __future__ import annotations

import pytest

from fusewire._recording.implementation import ThreadTape, places_of_signatures
from tests.client.loops import H
from tests.client.peer import connect


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
    tape.pass_over(5)
    assert (tape.records_kept, tape.next_number) == (0, end + 5)


def test_deaths_are_taken_in_order(tape: ThreadTape) -> None:
    tape.take_deaths(tape.deaths)
    for handle in (7, 5, 6):
        tape.note_death(handle)
    assert tape.take_deaths(2).tolist() == [7, 5]
    assert tape.deaths == 1
    assert tape.take_deaths(1).tolist() == [6]
