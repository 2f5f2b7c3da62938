"""Which results of a program depend on failed operands, and on which of them first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fusewire_protos.in_steps import finished
from fusewire_protos.programs.program import Program, Users, build
from fusewire_server.programs.dependent_results import first_failed
from tests.server.parts import VECTOR, chain, op, pair


def failed_by(program: Program, failed: dict[int, int], *, is_loop: bool = False) -> dict[int, tuple[int, int]]:
    return finished(first_failed(program, failed, is_loop=is_loop))


@pytest.mark.parametrize(
    ("failed", "results"),
    [([], {}), ([0], {0: 0, 2: 0}), ([1], {1: 1, 2: 1}), ([1, 0], {0: 0, 1: 1, 2: 1})],
)
def test_only_what_depends_on_a_failed_operand_fails_and_by_the_first_of_them(
    failed: list[int], results: dict[int, int]
) -> None:
    found = failed_by(pair(), dict.fromkeys(failed, 0))
    assert found == {index: (0, operand) for index, operand in results.items()}


def test_failure_passes_through_results() -> None:
    program = build([VECTOR], [], [op("negative", 0), op("negative", 1), op("add", 2, 2)], (2,))
    assert failed_by(program, {0: 0}) == dict.fromkeys(range(3), (0, 0))


def test_failure_passes_to_the_next_iteration_with_what_is_carried() -> None:
    ops = [op("subtract", 0, 2), op("negative", 1)]  # x = x − (the y before), and −y
    program = build([VECTOR] * 3, [], ops, (0, 1), [(0, 3), (2, 1)])
    assert failed_by(program, {1: 5}, is_loop=True) == {0: (6, 1), 1: (5, 1)}
    assert failed_by(program, {1: 5}) == {1: (5, 1)}
    assert failed_by(program, {1: 5, 0: 2}, is_loop=True) == {0: (2, 0), 1: (5, 1)}


def test_each_value_is_looked_at_once_however_many_operands_fail() -> None:
    class Counted:
        looks = 0

        def __init__(self, users: Users) -> None:
            self._users = users

        def of(self, operand: int) -> Sequence[int]:
            Counted.looks += 1
            return self._users.of(operand)

    inputs, ops = 40, 60
    carried = [(number, inputs + number) for number in range(inputs)]
    adds = [op("add", number % inputs, number + inputs - 1) for number in range(ops)]
    program = build([VECTOR] * inputs, [], adds, range(ops), carried)
    program.__dict__["users"] = Counted(program.users)
    failed_by(program, {number: inputs - number for number in range(inputs)}, is_loop=True)
    assert Counted.looks <= inputs + ops


def test_a_long_program_is_followed_in_steps() -> None:
    steps = first_failed(chain(("negative",) * 8192, [0]), {0: 0})
    assert sum(1 for _ in steps) == 16


def test_many_operands_that_few_ops_take_are_followed_in_steps() -> None:
    program = build([VECTOR] * 4096, [], [op("negative", 0)], (0,))
    steps = first_failed(program, dict.fromkeys(range(4096), 0))
    assert sum(1 for _ in steps) == 8
