"""Scanning the integers of a tape: in NumPy, and the same in C."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire._recording import integer_scans
from fusewire._recording.implementation import RECORDER
from fusewire._recording.integer_scans import INSIDE, VALUE
from fusewire._recording.tape import FIRST_HANDLE, Integers

FIRST = FIRST_HANDLE + 100
OUTSIDE = FIRST_HANDLE + 7
OPS, VALUES = 3, 1
BODY = np.array([5, FIRST - 1, OUTSIDE, 6, FIRST, -4, 7, FIRST + 1], np.int64)
SHIFTS = np.array([0, OPS, 0, 0, OPS, -VALUES, 0, OPS], np.int64)

_compiled = pytest.mark.skipif(RECORDER != "compiled", reason="the compiled recorder is not in use")


def compiled() -> Any:
    return import_module("fusewire._recording.compiled_integer_scans")


def in_python(body: Integers, shifts: Integers, following: Integers) -> int:
    return integer_scans.count_repeats(body, shifts, following)


def in_c(body: Integers, shifts: Integers, following: Integers) -> int:
    count: int = compiled().count_repeats(body, shifts, following)
    return count


@pytest.mark.parametrize("scans", ["python", pytest.param("compiled", marks=_compiled)])
def test_a_record_begins_at_each_signature(scans: str) -> None:
    module = compiled() if scans == "compiled" else integer_scans
    assert module.places_of_signatures(BODY).tolist() == [0, 3, 6]
    assert module.places_of_signatures(BODY[:0]).tolist() == []


@_compiled
@given(st.lists(st.integers(-5, 20) | st.integers(FIRST_HANDLE - 2, FIRST_HANDLE + 2)))
def test_c_finds_the_places_that_numpy_finds(integers: list[int]) -> None:
    flat = np.array(integers, np.int64)
    expected, actual = integer_scans.places_of_signatures(flat), compiled().places_of_signatures(flat)
    np.testing.assert_array_equal(expected, actual, strict=True)


Count = Callable[[Integers, Integers, Integers], int]
both = pytest.mark.parametrize("count", [in_python, pytest.param(in_c, marks=_compiled)])


def repeated(bodies: int) -> Integers:
    """The integers of the bodies behind the first."""
    return np.concatenate([BODY + SHIFTS * body for body in range(1, bodies + 1)])


@both
def test_all_whole_bodies_are_counted_and_the_begun_one_is_not(count: Count) -> None:
    assert count(BODY, SHIFTS, repeated(4)[:-1]) == 3


@both
@pytest.mark.parametrize("place", range(len(BODY)))
def test_the_count_ends_at_the_body_with_another_integer(count: Count, place: int) -> None:
    following = repeated(4)
    following[2 * len(BODY) + place] += 1
    assert count(BODY, SHIFTS, following) == 2


@both
@pytest.mark.parametrize("integers", [0, 1, len(BODY) - 1])
def test_less_than_a_body_is_no_repeat(count: Count, integers: int) -> None:
    assert count(BODY, SHIFTS, repeated(1)[:integers]) == 0


@_compiled
def test_shifts_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match="2 shifts of 8 integers"):
        in_c(BODY, np.zeros(2, np.int64), repeated(1))


@_compiled
@given(
    body=st.lists(st.integers(-5, 5), min_size=1, max_size=6),
    repeats=st.integers(0, 5),
    changes=st.lists(st.tuples(st.integers(0, 40), st.integers(-2, 2)), max_size=3),
    data=st.data(),
)
def test_c_counts_as_numpy_does(
    body: list[int], repeats: int, changes: list[tuple[int, int]], data: st.DataObject
) -> None:
    shifts = data.draw(st.lists(st.integers(-2, 2), min_size=len(body), max_size=len(body)))
    first, steps = np.array(body, np.int64), np.array(shifts, np.int64)
    following = (first + steps * np.arange(1, repeats + 1).reshape(-1, 1)).ravel()
    for place, change in changes:
        if place < len(following):
            following[place] += change
    assert in_c(first, steps, following) == in_python(first, steps, following)


@pytest.mark.parametrize("scans", ["python", pytest.param("compiled", marks=_compiled)])
def test_results_are_told_from_other_integers(scans: str) -> None:
    module = compiled() if scans == "compiled" else integer_scans
    integers = np.array([7, FIRST + 2, -1, FIRST, OUTSIDE, FIRST + 2, FIRST + OPS, FIRST - 1], np.int64)
    is_among, others = module.results_among(integers, FIRST, OPS)
    assert is_among.tolist() == [True, False, True]
    assert others.tolist() == [7, -1, OUTSIDE, FIRST + OPS, FIRST - 1]


@_compiled
@given(handles=st.lists(st.integers(-5, 20) | st.integers(-(1 << 63), (1 << 63) - 1)), ops=st.integers(0, 12))
def test_c_finds_the_results_that_numpy_finds(handles: list[int], ops: int) -> None:
    given_handles = np.array(handles, np.int64)
    expected, actual = (
        integer_scans.results_among(given_handles, 3, ops),
        compiled().results_among(given_handles, 3, ops),
    )
    for own, other in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(own, other, strict=True)


# A product of two inputs, a sum of its result and the first input, and a scaling.
INPUT = integer_scans.OUTSIDE
STRUCTURE = [5, INPUT, INPUT + 1, 6, INSIDE, INPUT, 7, INSIDE + 1, VALUE]
PIECE = [5, OUTSIDE, FIRST - 1, 6, FIRST, OUTSIDE, 7, FIRST + 1, -9]


@pytest.mark.parametrize("scans", ["python", pytest.param("compiled", marks=_compiled)])
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
def test_the_inputs_of_a_piece_are_those_of_its_structure(
    scans: str, changes: dict[int, int], expected: list[int] | None
) -> None:
    module = compiled() if scans == "compiled" else integer_scans
    flat = np.array([changes.get(place, integer) for place, integer in enumerate(PIECE)], np.int64)
    assert module.inputs_among(np.array(STRUCTURE, np.int64), flat, FIRST, OPS) == expected
    assert module.inputs_among(np.array(STRUCTURE[:-1], np.int64), flat, FIRST, OPS) is None


@_compiled
@given(
    structure=st.lists(st.integers(-2, 3) | st.integers(INSIDE, INSIDE + 3), max_size=8),
    inputs=st.lists(st.integers(0, 2), max_size=4),
    data=st.data(),
)
def test_c_finds_the_inputs_that_numpy_finds(structure: list[int], inputs: list[int], data: st.DataObject) -> None:
    numbers = {number: place for place, number in enumerate(dict.fromkeys(inputs))}
    cells = np.array([*structure, *[INPUT + numbers[number] for number in inputs]], np.int64)
    drawn = st.integers(-2, 3) | st.integers(FIRST - 2, FIRST + 4)
    flat = np.array(data.draw(st.lists(drawn, min_size=len(cells), max_size=len(cells))), np.int64)
    same = np.array(data.draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells))), bool)
    is_inside = (cells >= INSIDE) & (cells < INPUT)
    likely = np.where(is_inside, cells - INSIDE + FIRST, np.where(cells >= INPUT, OUTSIDE, cells))
    flat[same] = likely[same]
    assert compiled().inputs_among(cells, flat, FIRST, OPS) == integer_scans.inputs_among(cells, flat, FIRST, OPS)
