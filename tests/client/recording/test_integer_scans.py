"""Scanning the integers of a tape: in C, as NumPy would."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire._recording import integer_scans
from fusewire._recording.integer_scans import INSIDE, VALUE, count_repeats, inputs_among, inputs_of_step, results_among
from fusewire._recording.tape import FIRST_HANDLE, Integers

FIRST = FIRST_HANDLE + 100
OUTSIDE = FIRST_HANDLE + 7
OPS, VALUES = 3, 1
BODY = np.array([5, FIRST - 1, OUTSIDE, 6, FIRST, -4, 7, FIRST + 1], np.int64)
SHIFTS = np.array([0, OPS, 0, 0, OPS, -VALUES, 0, OPS], np.int64)


def places_in_numpy(flat: Integers) -> Integers:
    return ((flat >= 0) & (flat < FIRST_HANDLE)).nonzero()[0]


def repeats_in_numpy(body: Integers, shifts: Integers, following: Integers) -> int:
    length = len(body)
    bodies = following[: len(following) // length * length].reshape(-1, length)
    expected = body + shifts * np.arange(1, len(bodies) + 1).reshape(-1, 1)
    repeats = (bodies == expected).all(axis=1)
    return len(repeats) if repeats.all() else int(repeats.argmin())


def results_in_numpy(handles: Integers, first: int, ops: int) -> tuple[npt.NDArray[np.bool_], Integers]:
    numbers = np.arange(first, first + ops)
    return np.isin(numbers, handles), handles[~np.isin(handles, numbers)]


def inputs_in_numpy(structure: Integers, flat: Integers, first: int, ops: int) -> list[int] | None:
    is_outside, is_value = structure >= integer_scans.OUTSIDE, structure < 0
    own = np.where(structure >= INSIDE, structure - INSIDE + first, structure)
    inputs, taken = structure[is_outside] - integer_scans.OUTSIDE, flat[is_outside]
    is_elsewhere = (taken >= FIRST_HANDLE) & ((taken < first) | (taken >= first + ops))
    bound = np.empty(inputs.max(initial=-1) + 1, np.int64)
    bound[inputs] = taken
    has_structure = (
        ((flat == own) | is_outside | is_value).all()
        and (flat[is_value] < 0).all()
        and is_elsewhere.all()
        and (bound[inputs] == taken).all()
    )
    return bound.tolist() if has_structure else None


def test_a_record_begins_at_each_signature() -> None:
    assert integer_scans.places_of_signatures(BODY).tolist() == [0, 3, 6]
    assert integer_scans.places_of_signatures(BODY[:0]).tolist() == []


@given(st.lists(st.integers(-5, 20) | st.integers(FIRST_HANDLE - 2, FIRST_HANDLE + 2)))
def test_all_places_are_found_that_numpy_finds(integers: list[int]) -> None:
    flat = np.array(integers, np.int64)
    np.testing.assert_array_equal(integer_scans.places_of_signatures(flat), places_in_numpy(flat), strict=True)


def repeated(bodies: int) -> Integers:
    """The integers of the bodies behind the first."""
    return np.concatenate([BODY + SHIFTS * body for body in range(1, bodies + 1)])


def test_all_whole_bodies_are_counted_and_the_begun_one_is_not() -> None:
    assert count_repeats(BODY, SHIFTS, repeated(4)[:-1]) == 3


@pytest.mark.parametrize("place", range(len(BODY)))
def test_the_count_ends_at_the_body_with_another_integer(place: int) -> None:
    following = repeated(4)
    following[2 * len(BODY) + place] += 1
    assert count_repeats(BODY, SHIFTS, following) == 2


@pytest.mark.parametrize("integers", [0, 1, len(BODY) - 1])
def test_less_than_a_body_is_no_repeat(integers: int) -> None:
    assert count_repeats(BODY, SHIFTS, repeated(1)[:integers]) == 0


def test_shifts_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match="2 shifts of 8 integers"):
        count_repeats(BODY, np.zeros(2, np.int64), repeated(1))


@given(
    body=st.lists(st.integers(-5, 5), min_size=1, max_size=6),
    repeats=st.integers(0, 5),
    changes=st.lists(st.tuples(st.integers(0, 40), st.integers(-2, 2)), max_size=3),
    data=st.data(),
)
def test_repeats_are_counted_as_numpy_counts_them(
    body: list[int], repeats: int, changes: list[tuple[int, int]], data: st.DataObject
) -> None:
    shifts = data.draw(st.lists(st.integers(-2, 2), min_size=len(body), max_size=len(body)))
    first, steps = np.array(body, np.int64), np.array(shifts, np.int64)
    following = (first + steps * np.arange(1, repeats + 1).reshape(-1, 1)).ravel()
    for place, change in changes:
        if place < len(following):
            following[place] += change
    assert count_repeats(first, steps, following) == repeats_in_numpy(first, steps, following)


def test_results_are_told_from_other_integers() -> None:
    integers = np.array([7, FIRST + 2, -1, FIRST, OUTSIDE, FIRST + 2, FIRST + OPS, FIRST - 1], np.int64)
    is_among, others = results_among(integers, FIRST, OPS)
    assert is_among.tolist() == [True, False, True]
    assert others.tolist() == [7, -1, OUTSIDE, FIRST + OPS, FIRST - 1]


@given(handles=st.lists(st.integers(-5, 20) | st.integers(-(1 << 63), (1 << 63) - 1)), ops=st.integers(0, 12))
def test_the_results_are_found_that_numpy_finds(handles: list[int], ops: int) -> None:
    given_handles = np.array(handles, np.int64)
    found, expected = results_among(given_handles, 3, ops), results_in_numpy(given_handles, 3, ops)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, other, strict=True)


# A product of two inputs, a sum of its result and the first input, and a scaling.
INPUT = integer_scans.OUTSIDE
STRUCTURE = [5, INPUT, INPUT + 1, 6, INSIDE, INPUT, 7, INSIDE + 1, VALUE]
PIECE = [5, OUTSIDE, FIRST - 1, 6, FIRST, OUTSIDE, 7, FIRST + 1, -9]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [OUTSIDE, FIRST - 1]),
        ({2: OUTSIDE}, [OUTSIDE, OUTSIDE]),
        ({8: -1}, [OUTSIDE, FIRST - 1]),
        ({5: FIRST - 1}, None),  # another handle for the same input
        ({4: FIRST + 1}, None),  # another result
        ({2: FIRST}, None),  # a result for an input
        ({2: 7}, None),  # a signature for an input
        ({8: OUTSIDE}, None),  # an input for a value
        ({2: -1}, None),
        ({3: 8}, None),  # another op
    ],
)
def test_the_inputs_of_a_piece_are_those_of_its_structure(changes: dict[int, int], expected: list[int] | None) -> None:
    flat = np.array([changes.get(place, integer) for place, integer in enumerate(PIECE)], np.int64)
    assert inputs_among(np.array(STRUCTURE, np.int64), flat, FIRST, OPS) == expected
    assert inputs_among(np.array(STRUCTURE[:-1], np.int64), flat, FIRST, OPS) is None


@given(
    structure=st.lists(st.integers(-2, 3) | st.integers(INSIDE, INSIDE + 3), max_size=8),
    inputs=st.lists(st.integers(0, 2), max_size=4),
    data=st.data(),
)
def test_the_inputs_are_found_that_numpy_finds(structure: list[int], inputs: list[int], data: st.DataObject) -> None:
    numbers = {number: place for place, number in enumerate(dict.fromkeys(inputs))}
    cells = np.array([*structure, *[INPUT + numbers[number] for number in inputs]], np.int64)
    drawn = st.integers(-2, 3) | st.integers(FIRST - 2, FIRST + 4)
    flat = np.array(data.draw(st.lists(drawn, min_size=len(cells), max_size=len(cells))), np.int64)
    same = np.array(data.draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells))), bool)
    is_inside = (cells >= INSIDE) & (cells < INPUT)
    likely = np.where(is_inside, cells - INSIDE + FIRST, np.where(cells >= INPUT, OUTSIDE, cells))
    flat[same] = likely[same]
    assert inputs_among(cells, flat, FIRST, OPS) == inputs_in_numpy(cells, flat, FIRST, OPS)


@pytest.mark.parametrize(
    ("live", "dead", "expected"),
    [
        ([False, False, True], [FIRST + 1, FIRST], ([OUTSIDE, FIRST - 1], [])),
        ([False, False, True], [OUTSIDE, FIRST, FIRST + 1, FIRST - 1], ([OUTSIDE, FIRST - 1], [OUTSIDE, FIRST - 1])),
        ([True, True, True], [], ([OUTSIDE, FIRST - 1], [])),
        ([True, True, True], [FIRST], None),  # fewer live results
        ([False, False, True], [FIRST], None),  # more live results
        ([False, False, True], [FIRST, FIRST + 2], None),  # as many live results, but others
    ],
)
def test_a_step_is_known_by_its_live_results(
    live: list[bool], dead: list[int], expected: tuple[list[int], list[int]] | None
) -> None:
    structure, flat = np.array(STRUCTURE, np.int64), np.array(PIECE, np.int64)
    assert inputs_of_step(structure, np.array(live), flat, FIRST, np.array(dead, np.int64)) == expected
    other = np.array([*STRUCTURE[:-1], INSIDE], np.int64)
    assert inputs_of_step(other, np.array(live), flat, FIRST, np.array(dead, np.int64)) is None
