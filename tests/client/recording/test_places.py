"""Places in the user's code: one number each, as long as they are kept, and their lines."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

import fusewire as fw
from fusewire._recording.places import INTERNAL, NOT_KNOWN, Places, source_line
from fusewire._recording.recorded_ops import user_place


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


def test_all_places_in_the_client_have_one_number() -> None:
    assert Places().number_at(frame_within_the_client()) == INTERNAL


@pytest.mark.parametrize("module", ["torch.nn.functional", "fusewire._api.array", "fusewire_torch.storage"])
def test_the_users_place_is_the_innermost_outside_of_the_client_and_pytorch(module: str) -> None:
    scope = {"__name__": module, "user_place": user_place, "here": here}
    exec("def run(): return user_place(here())", scope)  # noqa: S102
    number, line = scope["run"](), here().f_lineno  # type: ignore[operator]
    assert source_line(number) == (__file__, line)


def test_a_stack_without_the_users_code_has_no_place() -> None:
    scope = {"__name__": "torch.autograd.graph"}
    exec("def run(): yield", scope)  # noqa: S102
    paused = scope["run"]()  # type: ignore[operator]
    next(paused)
    assert user_place(paused.gi_frame) == NOT_KNOWN  # no code called what is paused


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
