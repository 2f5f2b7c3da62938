"""Every scenario computes the same in Fusewire and in NumPy, and other values in every session."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire.testing import session_in_memory
from loadtests.scenarios import library
from loadtests.scenarios.catalogue import find_scenarios
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Program

_SCENARIOS = find_scenarios()
_STEPS = 3
# These are read too seldom to compare values of few steps, or move very large arrays.
_COMPARED = sorted(_SCENARIOS.keys() - {"ahead", "unequal"})


def _values(program: Program, xp: Library, session: int) -> list[npt.NDArray[Any]]:
    steps, value, values = program(xp, Data(1, session)), None, []
    for _ in range(_STEPS):
        array = steps.send(value)
        value = None if array is None else xp.read(array)
        values += [] if value is None else [np.array(value)]
    return values


@pytest.mark.filterwarnings("ignore:overflow encountered in exp")
@pytest.mark.parametrize("name", _COMPARED)
def test_a_program_computes_what_numpy_computes(name: str) -> None:
    program = _SCENARIOS[name].program
    expected = _values(program, library.numpy(), 3)
    with session_in_memory() as session:
        actual = _values(program, library.fusewire(session), 3)
    assert len(actual) == len(expected) == _STEPS
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, 2e-3, 2e-4)


@pytest.mark.filterwarnings("ignore:overflow encountered in exp")
@pytest.mark.parametrize("name", _COMPARED)
def test_no_two_sessions_compute_the_same(name: str) -> None:
    one, other = (_values(_SCENARIOS[name].program, library.numpy(), session)[0] for session in (0, 8))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", ["ahead", "unequal"])
def test_a_program_that_is_seldom_read_reads_finite_values(name: str) -> None:
    xp = library.numpy()
    steps = _SCENARIOS[name].program(xp, Data(1, 0))
    array = next(array for array in steps if array is not None)
    assert np.isfinite(xp.read(array)).all()


@pytest.mark.parametrize("name", sorted(_SCENARIOS))
def test_a_scenario_says_what_it_does_and_shows(name: str) -> None:
    scenario = _SCENARIOS[name]
    assert scenario.name == name
    assert len(scenario.what) > 20
    assert scenario.shows.startswith(("whether", "the ", "a ", "how "))
    assert scenario.sessions > 0


def test_only_scenarios_with_one_measured_program_have_a_peer() -> None:
    assert not any(each.peers and (each.disturber or each.sessions_vanish) for each in _SCENARIOS.values())
