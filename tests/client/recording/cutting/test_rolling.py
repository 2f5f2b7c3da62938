"""Which bodies of a loop are iterations of one loop, and what its inputs are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fusewire._recording.cutting.rolling import RolledBodies, RolledBody, last_body, place_of_new_start, roll, rolled_on
from fusewire._recording.integer_scans import INSIDE, OUTSIDE, VALUE
from fusewire._recording.tape import FIRST_HANDLE, Integers
from fusewire_protos.frames import FIRST_UPLOAD
from fusewire_protos.programs.program import MOST_LAG

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
    assert loop.body.carried == ((0, INSIDE + 2),)
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


@pytest.mark.parametrize(
    ("cell", "integer", "is_of"),
    [
        (1, OTHER, True),  # the state of another loop
        (1, FIRST - 1, True),
        (2, OTHER, True),
        (8, -77, True),  # another value
        (1, FIRST + 1, False),  # a result of its own instead of the state
        (4, OTHER, False),  # a value from elsewhere instead of a result of its own
        (4, FIRST + 1, False),
        (3, SCALE, False),
        (5, -1, False),
        (8, OTHER, False),
    ],
)
def test_a_single_body_is_of_a_structure_whatever_it_takes_from_before_it(cell: int, integer: int, is_of: bool) -> None:
    known = rolled(bodies(carried(4))).body
    body = bodies([START])
    body[0, cell] = integer
    expected = rolled(body, known) if is_of else None
    assert known.of_one(body[0], FIRST, OPS) == expected


def test_a_body_of_another_length_is_of_another_structure() -> None:
    assert rolled(bodies(carried(4))).body.of_one(bodies([START])[0, :-1], FIRST, OPS) is None


def test_inputs_that_are_one_make_a_body_of_a_structure() -> None:
    known = rolled(bodies([W], [W])).body  # the state and the weights are one input
    assert known.of_one(bodies([OTHER], [OTHER])[0], FIRST, OPS) is not None
    assert known.of_one(bodies([OTHER], [W])[0], FIRST, OPS) is None


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
    assert place_of_new_start(rows, FIRST, OPS, known) == 1
    assert place_of_new_start(bodies([FIRST - 1]), FIRST, OPS, known) == 0


def lagging(count: int, start: tuple[int, int] = (START, OTHER)) -> list[int]:
    """The states of a loop that takes what it has computed two iterations before, and begins with `start`."""
    return [*start, *[FIRST + body * OPS + 2 for body in range(count - 2)]][:count]


def test_a_result_of_two_iterations_before_passes_through_two_inputs() -> None:
    loop = rolled(bodies(lagging(10)))
    assert loop.iterations == 10
    assert loop.inputs == [START, W, B, OTHER]
    assert loop.body.carried == ((0, OUTSIDE + 3), (3, INSIDE + 2))
    assert loop.stepped == ()


@pytest.mark.parametrize(("lag", "iterations"), [(MOST_LAG, 40), (MOST_LAG + 1, MOST_LAG + 1)])
def test_a_result_is_carried_over_so_many_iterations_at_most(lag: int, iterations: int) -> None:
    states = [*[START] * lag, *[FIRST + body * OPS + 2 for body in range(40 - lag)]]
    assert rolled(bodies(states)).iterations == iterations


def test_the_result_of_the_iteration_before_is_one_input_with_that_of_two_before() -> None:
    rows = bodies(lagging(10))
    rows[:, 5] = carried(10, start=OTHER)  # the sum takes the last state, and the product the one before
    loop = rolled(rows)
    assert loop.inputs == [START, W, OTHER]
    assert loop.body.carried == ((0, OUTSIDE + 2), (2, INSIDE + 2))


def test_bodies_whose_first_values_differ_do_not_share_their_input() -> None:
    rows = bodies(lagging(10))
    rows[:, 5] = carried(10, start=OTHER)
    known = rolled(rows).body
    rows[0, 5] = B
    loop = rolled(rows, known)
    assert (loop.body is known, loop.iterations) == (True, 1)


def test_a_single_body_binds_what_it_takes_to_all_inputs_of_its_cell() -> None:
    known = rolled(bodies(lagging(4))).body
    loop = rolled(bodies([OTHER]), known)
    assert (loop.body is known, loop.inputs) == (True, [OTHER, W, B, OTHER])


def test_what_two_bodies_did_not_show_to_be_carried_the_third_shows() -> None:
    known = rolled(bodies(lagging(2))).body
    assert not known.carried
    loop = rolled(bodies(lagging(10)), known)
    assert (len(loop.body.carried), loop.iterations) == (2, 10)


def test_two_bodies_of_a_loop_that_runs_show_what_is_carried() -> None:
    before = FIRST - 2 * OPS + 2
    assert len(rolled(bodies(lagging(2, start=(before, before + OPS)))).body.carried) == 2


def test_a_loop_goes_on_only_from_a_body_that_takes_what_it_carries() -> None:
    body = rolled(bodies(carried(4))).body
    rows = bodies(carried(4))
    assert last_body(rows[0], FIRST + OPS, OPS, body) is None
    last = last_body(rows[1], FIRST + 2 * OPS, OPS, body)
    assert last is not None
    assert last.goes_on(rows[2:], FIRST + 2 * OPS, OPS)
    rows[3, 1] = START
    assert not last.goes_on(rows[2:], FIRST + 2 * OPS, OPS)


def test_a_known_loop_begins_anew_from_any_handles() -> None:
    known = rolled(bodies(carried(4))).body
    rows = bodies(carried(6, start=OTHER), [START] * 6)
    anew = known.begun_anew(rows, FIRST, OPS)
    assert anew == rolled(rows, known)
    assert anew is not None
    assert (anew.body is known, anew.iterations, anew.inputs) == (True, 6, [OTHER, START, B])


@pytest.mark.parametrize(
    ("body", "cell", "integer"),
    [
        (0, 4, OTHER),  # a value from elsewhere instead of a result of its own
        (1, 1, START),  # not carried
        (3, 1, OTHER),
        (2, 2, OTHER),  # a handle from elsewhere that changes
        (3, 8, -99),  # a value of another body
    ],
)
def test_a_loop_whose_bodies_do_not_follow_from_the_first_does_not_begin_anew(
    body: int, cell: int, integer: int
) -> None:
    known = rolled(bodies(carried(4))).body
    rows = bodies(carried(4))
    rows[body, cell] = integer
    assert known.begun_anew(rows, FIRST, OPS) is None


def test_a_loop_that_carries_over_two_iterations_is_rolled_when_it_begins_anew() -> None:
    known = rolled(bodies(lagging(10))).body
    assert known.begun_anew(bodies(lagging(10)), FIRST, OPS) is None


def taken(loop: RolledBodies, first: int) -> Integers:
    """What the cells of `loop.body.taking` hold in each iteration, computed from the bindings of the loop."""
    body, held, stepped = loop.body, [*loop.inputs], dict(loop.stepped)
    slot_of = {int(cell): slot for slot, cell in enumerate(body.input_cells) if not body.input_iterations[slot]}
    rows = []
    for iteration in range(loop.iterations):
        for slot, handles in stepped.items():
            held[slot] = handles[iteration]
        rows.append([held[slot_of[int(cell)]] for cell in body.first_cells])
        results = first + iteration * OPS - INSIDE
        following = {slot: held[cell - OUTSIDE] if cell >= OUTSIDE else results + cell for slot, cell in body.carried}
        held = [following.get(slot, handle) for slot, handle in enumerate(held)]
    return np.array(rows)


outer = st.sampled_from([START, OTHER, W, *[FIRST - back for back in (1, 2, OPS + 1, 2 * OPS + 1, 30 * OPS + 1)]])
runs = st.lists(st.tuples(st.integers(-1, 4), st.integers(1, 12), outer), min_size=1, max_size=5)


def wired(found: list[tuple[int, int, int]], count: int) -> list[int]:
    """What a cell holds in `count` bodies. Each of `found` says of how many bodies before a result is, or 0 for the
    handle that it gives, or −1 for handles that step from there; for how many bodies that is so; and the handle.
    """
    states: list[int] = []
    for lag, length, start in itertools.cycle(found):
        for index in range(length):
            before = FIRST + (len(states) - lag) * OPS + 2
            is_result = 0 < lag <= len(states)
            states.append(before if is_result else start + index * OPS if lag < 0 else start)
        if len(states) >= count:
            return states[:count]
    raise AssertionError("there is no end to a cycle")


# Begun anew, a loop takes over two iterations what is none of what its first iteration takes.
@example([(0, 1, OTHER), (1, 2, OTHER)], [(0, 1, OTHER), (2, 1, OTHER)], [2, 6])
@given(runs, runs, st.lists(st.integers(1, 12), min_size=1, max_size=8))
def test_whatever_bodies_take_a_loop_of_them_takes(
    states: list[tuple[int, int, int]], others: list[tuple[int, int, int]], pieces: list[int]
) -> None:
    """Each body is in one loop, however the bodies come in pieces, and each iteration takes what its body took."""
    rows = bodies(wired(states, sum(pieces)))
    rows[:, 5] = wired(others, len(rows))
    begun, known, last = 0, None, None
    while begun < len(rows):
        first, piece = FIRST + begun * OPS, rows[begun : begun + pieces[begun % len(pieces)]]
        if known is not None and last is not None and last.goes_on(piece, first, OPS):
            loop = rolled_on(piece, known)
        else:
            loop = roll(piece, first, OPS, known)
            if known is not None:
                assert known.begun_anew(piece, first, OPS) in (None, loop)
        assert loop.iterations >= 1
        assert (taken(loop, first) == piece[: loop.iterations, loop.body.taking]).all()
        known, begun = loop.body, begun + loop.iterations
        last = last_body(rows[begun - 1], FIRST + begun * OPS, OPS, known)
