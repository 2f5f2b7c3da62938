"""How the values of a loop change from iteration to iteration."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire._recording.cutting.stepped_values import steps_of
from fusewire_protos.frames import Scalar, Steps


@pytest.mark.parametrize(
    ("column", "steps"),
    [
        ([0, 32, 64], 32),
        ([9, 7, 5], -2),
        ([0, 1, 3], (0, 1, 3)),
        ([1, 2, 1, 2], (1, 2)),
        ([0.5, 0.25, 0.5, 0.25], (0.5, 0.25)),
        ([0.0, 0.1, 0.2], (0.0, 0.1, 0.2)),
        ([0.0, -0.0, 0.0, -0.0], (0.0, -0.0)),
        ([True, False, True], (True, False, True)),
        ([2**63 - 1, -(2**63)], (2**63 - 1, -(2**63))),  # their differences do not fit 64 bits
        ([-(2**63), 2**63 - 1], (-(2**63), 2**63 - 1)),
        ([-1, 2**63 - 2], 2**63 - 1),
    ],
)
def test_integers_step_by_a_difference_and_all_else_by_a_period(column: list[Scalar], steps: Steps) -> None:
    assert steps_of(column, 1) == ((0, steps),)


@pytest.mark.parametrize("column", [[3, 3, 3], [0.5, 0.5], [0.0, 0.0], [math.nan, math.nan], [7]])
def test_what_stays_the_same_is_not_stepped(column: list[Scalar]) -> None:
    assert steps_of(column, 1) == ()


@given(st.integers(1, 4), st.integers(1, 12), st.data())
def test_the_steps_give_the_values_again(in_iteration: int, iterations: int, data: st.DataObject) -> None:
    kinds = [data.draw(st.sampled_from([st.integers(-3, 3), st.floats(-1, 1)])) for _ in range(in_iteration)]
    values = [data.draw(kinds[index % in_iteration]) for index in range(in_iteration * iterations)]
    again = values[:in_iteration] * iterations
    for position, steps in steps_of(values, in_iteration):
        for iteration in range(iterations):
            again[iteration * in_iteration + position] = (
                steps[iteration % len(steps)] if isinstance(steps, tuple) else values[position] + steps * iteration
            )
    assert [repr(value) for value in again] == [repr(value) for value in values]
