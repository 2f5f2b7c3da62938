"""Comparing what a session read in company with what it reads alone, and with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from loadtests.load.checks.verification import first_difference
from loadtests.load.runners.reads import Read, Reads
from loadtests.scenarios import library
from loadtests.scenarios.catalogue import find_scenarios
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario

_STEPS, _SESSION = 30, (0, 3)
_SCENARIOS = find_scenarios()


def _reads(scenario: Scenario, xp: Library, room_bytes: int = 1 << 20) -> list[Read]:
    reads, value = Reads(room_bytes), None
    program = scenario.program(xp, Data(*_SESSION))
    for _ in range(_STEPS):
        value = xp.read(program.send(value))
        reads.add(value)
    return reads.kept


def _wrong_at(faulty_step: int, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Library:
    """NumPy, which reads one value wrongly."""
    reads = 0

    def read(array: Any) -> npt.NDArray[Any]:
        nonlocal reads
        reads += 1
        return change(np.array(array)) if reads == faulty_step else np.array(array)

    return library.numpy()._replace(read=read)


def _flipped(value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    value.view(np.uint32)[0, 1] ^= 1
    return value


def _difference(
    name: str, company: Library, alone: Library | None = None, numpy: Library | None = None, room_bytes: int = 1 << 20
) -> str | None:
    scenario = _SCENARIOS[name]
    reads = _reads(scenario, company, room_bytes)
    return first_difference(scenario, reads, _SESSION, alone or library.numpy(), numpy or library.numpy())


def test_a_session_that_reads_the_same_has_no_difference() -> None:
    assert _difference("rl", library.numpy()) is None


def test_a_wrong_bit_is_found_at_its_step_and_element() -> None:
    difference = _difference("rl", _wrong_at(7, _flipped))
    assert difference is not None
    assert difference.startswith("step 7: other bits than alone: float32 [0, 1] is ")
    assert "NumPy" not in difference  # one bit is less than the tolerance between libraries


def test_a_wrong_bit_is_found_where_values_were_too_large_to_be_kept() -> None:
    difference = _difference("rl", _wrong_at(7, _flipped), room_bytes=0)
    assert difference == "step 7: other bits than alone: another value, which was too large to be kept"


def test_a_value_that_is_wrong_in_company_and_alone_is_found_by_numpy() -> None:
    company, alone = (_wrong_at(9, lambda value: value * 2) for _ in range(2))
    difference = _difference("rl", company, alone)
    assert difference is not None
    assert difference.startswith("step 9: not what NumPy computes: float32 [0, 0] is ")
    assert "alone not what NumPy computes" in difference
    assert "other bits" not in difference


def test_a_single_bit_that_is_wrong_in_company_and_alone_is_found_in_an_exact_scenario() -> None:
    difference = _difference("exact", _wrong_at(9, _flipped), _wrong_at(9, _flipped))
    assert difference is not None
    assert difference.startswith("step 9: not what NumPy computes: float32 [0, 1] is ")


def test_roundings_are_no_difference_to_numpy() -> None:
    rounding = library.numpy()._replace(tanh=lambda x: np.tanh(x) * np.float32(1 + 1e-6))
    assert _difference("rl", rounding, rounding) is None


def test_a_value_of_another_dtype_is_a_difference() -> None:
    difference = _difference("rl", _wrong_at(4, lambda value: value.astype(np.float64)))
    assert difference is not None
    assert difference.startswith(
        "step 4: other bits than alone: float64 of shape (1, 4), expected float32 of shape (1, 4)"
    )
