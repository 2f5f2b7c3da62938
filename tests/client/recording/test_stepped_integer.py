"""Integers that grow from iteration to iteration."""

from __future__ import annotations

import pytest

from fusewire._recording.stepped_integer import SteppedInteger


@pytest.mark.parametrize(
    ("first", "step", "iterations", "is_within"),
    [(2, 1, 3, True), (2, 1, 4, False), (4, -1, 3, True), (4, -1, 4, False), (1, 0, 9, False), (2, 100, 1, True)],
)
def test_it_is_within_bounds_if_its_first_and_last_values_are(
    first: int, step: int, iterations: int, *, is_within: bool
) -> None:
    assert SteppedInteger(first, step, iterations).is_within(2, 4) is is_within


def test_it_is_its_value_in_the_first_iteration() -> None:
    assert SteppedInteger(7, 2, 5) == 7
