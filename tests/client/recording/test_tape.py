"""The tape: records, their numbers, and the values they refer to."""

from __future__ import annotations

from fusewire._recording.tape import FIRST_HANDLE, Tape, flatten

A, B = FIRST_HANDLE + 100, FIRST_HANDLE + 101


def _tape() -> Tape:
    return Tape(FIRST_HANDLE, [(1, A, B), (2, A, -1), (3, B), (2, B, -2)], 0, [0.5, 0.25])


def test_numbers_follow_from_places() -> None:
    tape = _tape()
    assert tape.end == FIRST_HANDLE + 5
    assert tape.between(FIRST_HANDLE + 2, FIRST_HANDLE + 4) == [(2, A, -1), (3, B)]


def test_values_are_found_by_the_operands_that_refer_to_them() -> None:
    tape = _tape()
    assert tape.values_of(flatten(tape.records)) == [0.5, 0.25]
    assert tape.values_of(flatten(tape.records[2:])) == [0.25]


def test_a_shorter_tape_numbers_and_finds_as_before() -> None:
    tape = _tape().without(2, unsent=FIRST_HANDLE + 3)
    assert tape.end == FIRST_HANDLE + 5
    assert tape.between(FIRST_HANDLE + 4, FIRST_HANDLE + 5) == [(2, B, -2)]
    assert tape.values == [0.25]
    assert tape.values_of(flatten(tape.records)) == [0.25]


def test_a_tape_whose_rest_needs_no_value_keeps_none() -> None:
    tape = _tape().without(1, unsent=FIRST_HANDLE + 5)
    assert tape.values == []
    assert tape.value_origin == 2


def test_no_records_flatten_to_nothing() -> None:
    assert flatten([]).tolist() == []


def test_a_shorter_tape_keeps_the_values_of_ops_that_took_them_in_another_order() -> None:
    tape = Tape(FIRST_HANDLE, [(1, A, B), (2, A, -2), (2, B, -1)], 0, [0.5, 0.25])
    shorter = tape.without(1, unsent=FIRST_HANDLE + 2)
    assert shorter.values_of(flatten(shorter.records)) == [0.25, 0.5]
