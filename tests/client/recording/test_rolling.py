"""Which bodies of a loop are iterations of one loop, and what its inputs are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusewire._recording.rolling import RolledBodies, RolledBody, begins_within, roll
from fusewire._recording.segments import INSIDE, OUTSIDE, VALUE
from fusewire._recording.tape import FIRST_HANDLE, Integers
from fusewire_protos.frames import FIRST_UPLOAD

FIRST = FIRST_HANDLE + 1001
W, B, START, OTHER = (FIRST_HANDLE + FIRST_UPLOAD + number for number in range(4))
MATMUL, ADD, SCALE = 5, 6, 7  # numbers of signatures
OPS = 3


def bodies(states: Sequence[int], weights: Sequence[int] | None = None) -> Integers:
    """Bodies of h = (h @ w + b) * value, of which each takes the given state and weights."""
    rows = []
    for body, state in enumerate(states):
        number = FIRST + body * OPS
        w = W if weights is None else weights[body]
        rows.append([MATMUL, state, w, ADD, number, B, SCALE, number + 1, -1 - body])
    return np.array(rows, np.int64)


def carried(count: int, start: int = START) -> list[int]:
    """The states of a loop that begins with `start`."""
    return [start, *[FIRST + body * OPS - 1 for body in range(1, count)]]


def rolled(rows: Integers, known: RolledBody | None = None) -> RolledBodies:
    return roll(rows, FIRST, OPS, known)


def test_a_loop_is_one_body_with_a_carried_input() -> None:
    loop = rolled(bodies(carried(10)))
    assert loop.iterations == 10
    assert loop.inputs == [START, W, B]
    assert loop.body.carried == ((0, 2),)
    assert loop.stepped == ()
    cells = [MATMUL, OUTSIDE, OUTSIDE + 1, ADD, INSIDE, OUTSIDE + 2, SCALE, INSIDE + 1, VALUE]
    assert np.frombuffer(loop.body.key, np.int64).tolist() == cells


def test_a_loop_that_goes_on_has_the_structure_of_its_beginning() -> None:
    begun = rolled(bodies(carried(4)))
    goes_on = rolled(bodies(carried(4, start=FIRST - 1)), begun.body)
    assert goes_on.body is begun.body
    assert goes_on.inputs[0] == FIRST - 1


def test_a_single_body_of_a_known_loop_has_its_structure() -> None:
    known = rolled(bodies(carried(4))).body
    assert rolled(bodies([OTHER]), known).body is known


def test_a_loop_that_begins_anew_ends_the_iterations() -> None:
    states = carried(8)
    states[5] = START
    assert rolled(bodies(states)).iterations == 5


def test_what_begins_anew_is_a_loop_of_the_same_structure() -> None:
    known = rolled(bodies(carried(4))).body
    states = [START, START, FIRST + 2 * OPS - 1]
    loop = rolled(bodies(states), known)
    assert (loop.body is known, loop.iterations) == (True, 1)


def test_a_handle_from_elsewhere_that_changes_is_stepped() -> None:
    weights = [W, OTHER, W]
    loop = rolled(bodies(carried(3), weights))
    assert loop.iterations == 3
    assert loop.stepped == ((1, (W, OTHER, W)),)
    assert loop.handles == [START, W, B, OTHER, W]
    assert loop.first(1).stepped == ()


def test_a_result_of_an_iteration_further_back_ends_the_iterations() -> None:
    states = carried(6)
    states[4] = FIRST + 2 * OPS + 2
    assert rolled(bodies(states)).iterations == 4


def test_cells_that_held_one_handle_are_one_input_until_they_do_not() -> None:
    rows = bodies(carried(4))
    rows[:, 5] = W  # the product and the sum take the same value
    known = rolled(rows).body
    assert len(known.input_cells) == 2
    rows[2:, 5] = B
    loop = rolled(rows, known)
    assert (loop.body is known, loop.iterations) == (True, 2)


def test_wiring_that_changes_for_good_is_another_structure() -> None:
    known = rolled(bodies(carried(4))).body
    rows = bodies([START] * 4)
    loop = rolled(rows, known)
    assert loop.body is not known
    assert (loop.iterations, loop.body.carried) == (4, ())


def test_a_loop_that_begins_within_a_body_begins_with_the_op_that_takes_the_other_value() -> None:
    known = rolled(bodies(carried(4))).body
    rows = bodies([FIRST - 1])
    rows[0, 4] = START  # the sum takes another value than the product
    assert begins_within(rows, FIRST, OPS, known) == 1
    assert begins_within(bodies([FIRST - 1]), FIRST, OPS, known) == 0


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_iterations_follow_each_other_and_leave_out_no_body(choices: list[int]) -> None:
    """Whatever the states are, each body is in one loop, and each iteration but the first takes what is carried."""
    states = []
    for body, choice in enumerate(choices):
        own = FIRST + body * OPS
        states.append({0: START, 1: OTHER}.get(choice, own - 1))
    rows, begun, known = bodies(states), 0, None
    while begun < len(rows):
        loop = roll(rows[begun:], FIRST + begun * OPS, OPS, known)
        known = loop.body
        assert loop.iterations >= 1
        if loop.body.carried:
            assert states[begun + 1 : begun + loop.iterations] == [
                FIRST + body * OPS - 1 for body in range(begun + 1, begun + loop.iterations)
            ]
        begun += loop.iterations
