"""Places in the user's code: one number each, as long as they are kept, and their lines."""

from __future__ import annotations

import sys
from types import FrameType

import fusewire as fw
from fusewire._recording.places import (
    INTERNAL,
    NOT_KNOWN,
    OPS_WITH_PLACES,
    OpPlaces,
    Places,
    place_of,
    places,
)


def here() -> FrameType:
    """The frame of the caller."""
    return sys._getframe(1)


def frame_within_the_client() -> FrameType:
    """A frame that runs a module of the client."""
    made: dict[str, FrameType] = {}
    exec("frame = sys._getframe()", {"__name__": fw.Array.__module__, "sys": sys}, made)  # noqa: S102
    return made["frame"]


def test_a_place_has_one_number_and_each_place_its_own() -> None:
    known = Places()
    numbers = [(known.number_at(here()), known.number_at(here())) for _ in range(3)]
    assert len({*numbers}) == 1
    assert len({*numbers[0]}) == 2


def test_the_line_is_that_of_the_instruction() -> None:
    known = Places()
    number, line = known.number_at(here()), here().f_lineno
    place = known.find(number)
    assert place is not None
    assert place.source_line() == (__file__, line)


def test_a_place_in_the_client_stands_for_the_one_that_called_it() -> None:
    frame = frame_within_the_client()
    assert Places().number_at(frame) == INTERNAL
    found = places.find(place_of(frame))
    assert found is not None
    assert found.code.co_filename == __file__


def test_code_without_a_user_has_no_place() -> None:
    assert place_of(None) == NOT_KNOWN


def test_the_oldest_places_are_dropped_and_their_numbers_stand_for_no_other() -> None:
    known = Places(most=4)
    numbers = []
    for index in range(6):
        made: dict[str, FrameType] = {}
        exec(compile(f"frame = sys._getframe()\n{index}", "made.py", "exec"), {"sys": sys}, made)  # noqa: S102
        numbers.append(known.number_at(made["frame"]))
    assert len({*numbers}) == 6
    assert [known.find(number) is None for number in numbers] == [True, True, False, False, False, False]
    assert known.generation == 1


def test_an_op_that_lies_too_far_back_has_no_place() -> None:
    of_ops = OpPlaces()
    for number in (5, 6, 5 + OPS_WITH_PLACES):
        of_ops.put(number, number)
    assert [of_ops.find(number) for number in (5, 6, 7, 5 + OPS_WITH_PLACES)] == [
        NOT_KNOWN,
        6,
        NOT_KNOWN,
        5 + OPS_WITH_PLACES,
    ]
