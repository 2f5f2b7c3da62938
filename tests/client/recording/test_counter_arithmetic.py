"""Which arrays of a loop's body are known to grow from iteration to iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._recording.counter_arithmetic import stepped_integer
from tests.client.peer import connect

ITERATIONS = 9


def found(expression: Callable[[fw.Array], Any]) -> tuple[int, int, int] | None:
    """What is known of an expression of the counter: its first value, its step, and how many iterations there are."""
    results = []

    def body(i: fw.Array, x: fw.Array) -> fw.Array:
        results.append(stepped_integer(expression(i), i._recorder))
        return x + 1

    with connect().session as session:
        fw.fori_loop(ITERATIONS, body, session.array(np.zeros(3)))
    (result,) = results
    return None if result is None else (int(result), result.step, result.iterations)


def sum_of(ones: int) -> Callable[[fw.Array], fw.Array]:
    def add(i: fw.Array) -> fw.Array:
        for _ in range(ones):
            i = i + 1
        return i

    return add


def doubled(i: fw.Array) -> fw.Array:
    for _ in range(16):
        i = i + i
    return i


@pytest.mark.parametrize(
    ("expression", "first", "step"),
    [
        (lambda i: i, 0, 1),
        (lambda i: i + 3, 3, 1),
        (lambda i: 8 - i, 8, -1),
        (lambda i: -i + 8, 8, -1),
        (lambda i: 2 * i + 1, 1, 2),
        (lambda i: (i - 1) * np.int64(4), -4, 4),
        (lambda i: i * 3 + (5 - i), 5, 2),
        (lambda i: i - i, 0, 0),
        (doubled, 0, 1 << 16),
        (sum_of(16), 16, 1),
    ],
)
def test_sums_and_multiples_of_the_counter_are(expression: Any, first: int, step: int) -> None:
    assert found(expression) == (first, step, ITERATIONS)


@pytest.mark.parametrize(
    "expression",
    [
        lambda i: i * i,
        lambda i: i % 2,
        lambda i: i // 2,
        lambda i: i + 0.5,
        lambda i: i.astype(fw.int32),
        lambda i: i + np.arange(2),
        lambda i: i + i._recorder.owner.array(np.int64(3)),
        lambda i: fw.where(i > 3, i, 0),
        sum_of(17),
    ],
)
def test_other_values_are_not(expression: Any) -> None:
    assert found(expression) is None


def test_the_counter_of_a_loop_that_was_recorded_is_not_that_of_another() -> None:
    counters: list[fw.Array] = []
    found: list[Any] = []

    def body(i: fw.Array, x: fw.Array) -> fw.Array:
        counters.append(i)
        found.append(stepped_integer(counters[0], counters[0]._recorder))
        return x + i

    with connect().session as session:
        start = session.array(np.zeros(3))
        fw.fori_loop(3, body, start)
        found.append(stepped_integer(counters[0], counters[0]._recorder))
        fw.fori_loop(3, body, start)
    assert [each is None for each in found] == [False, True, True]
