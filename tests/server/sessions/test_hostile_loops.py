"""Loops that no correct client sends: each rule of their bindings is checked before a value is made."""

from __future__ import annotations

from typing import Any

import pytest

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER, MAX_ITERATIONS, MAX_STORED, Fetch, Segment
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program, ProgramOp, build
from fusewire_server.config.config import Limits
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.session import Session
from tests.segments import loop_of
from tests.server.parts import CREDIT, SIZE_BYTES, VECTOR, new, op, upload
from tests.server.tables import World, answers, failure

COUNTING, WINDOWS, ODD, EMPTY = 20, 21, 22, 23  # numbers of programs
X, STEP, COUNT, ROWS, SHORT = 10, 11, 12, 13, 14  # handles of inputs
BASE, OPS = 100, 2
INTEGERS, MATRIX, SHORTER = Spec(dtypes.int32, (4,)), Spec(dtypes.float32, (8, 4)), Spec(dtypes.float32, (3,))


def counting() -> Program:
    """n = n + k with an integer k, and x + step."""
    ops = [op("add", 0, 3), op("add", 1, 2)]
    return build([INTEGERS, VECTOR, VECTOR], [dtypes.int32], ops, (0, 1), [(0, 4)])


def windows() -> Program:
    """x + the region of two rows and three columns that two starts choose, summed."""
    region = ProgramOp(catalogue.BY_NAME["slice"], (0,), ((0, 1), (2, 3), (1, 1), ()))
    return build([MATRIX], [], [region, op("negative", 1)], (1,), ())


def of_nothing() -> Program:
    """A slice without elements, negated."""
    region = ProgramOp(catalogue.BY_NAME["slice"], (0,), ((0,), (0,), (1,), ()))
    return build([MATRIX], [], [region, op("negative", 1)], (1,), ())


def opened(limits: Limits | None = None) -> tuple[World, Session]:
    world = World() if limits is None else World(limits)
    one = world.session()
    world.take(one, new(COUNTING, counting()), new(WINDOWS, windows()))
    world.take(one, upload(COUNT, INTEGERS))
    world.take(one, upload(ROWS, MATRIX), tensors=[bytes(MATRIX.size_bytes)])
    world.take(one, upload(SHORT, SHORTER), tensors=[bytes(SHORTER.size_bytes)])
    one.complete(one.in_flight)
    return world, one


def loop(
    iterations: int = 4,
    *,
    base: int = BASE,
    handle_stride: int = OPS,
    kept: tuple[int, ...] = (1, 1),
    scalar: int | float = 1,
    dying: tuple[int, ...] = (),
    **stepped: Any,
) -> Segment:
    first = Segment(COUNTING, base, (COUNT, X, STEP), (scalar,), (), dying)
    return loop_of(first, iterations, handle_stride, kept, **stepped)


def window(iterations: int, starts: Any, first: tuple[int, ...] = (0, 0)) -> Segment:
    return loop_of(Segment(WINDOWS, BASE, (ROWS,), (), first, ()), iterations, OPS, (1,), starts=starts)


def refusal(effects: Effects) -> str:
    (refused,) = effects.failures
    return refused.case.name


# ---- both ends of what steps ----


@pytest.mark.parametrize(
    ("first", "difference", "iterations"),
    [
        (1, 1, 1),
        (2**31 - 4, 1, 4),
        (3 - 2**31, -1, 4),
        (2**31 - 1, -1, MAX_ITERATIONS),
        (-(2**31), 1, MAX_ITERATIONS),
        (7, 0, MAX_ITERATIONS),
    ],
)
def test_integers_may_step_to_the_ends_of_their_dtype(first: int, difference: int, iterations: int) -> None:
    world, one = opened()
    world.take(one, loop(iterations, handle_stride=0, scalar=first, scalars=((0, difference),)))
    assert len(one.queue) == 1


@pytest.mark.parametrize(
    ("first", "difference", "iterations"),
    [
        (2**31 - 4, 1, 5),
        (3 - 2**31, -1, 5),
        (0, 1, MAX_ITERATIONS),
        (0, 2**62, MAX_ITERATIONS),
        (0, -(2**63), MAX_ITERATIONS),
        (1, 2**63 - 1, 3),  # the last is 1 again, where integers of 64 bits wrap
    ],
)
def test_integers_that_step_out_of_their_dtype_are_refused(first: int, difference: int, iterations: int) -> None:
    world, one = opened()
    effects = world.take(one, loop(iterations, handle_stride=0, scalar=first, scalars=((0, difference),)))
    assert refusal(effects) == "bad_binding"
    assert not one.queue


@pytest.mark.parametrize("values", [(1, 2**31), (-(2**31) - 1, 1), (1, 0.5), (1, 2, 3, float("nan"))])
def test_each_of_the_values_of_a_stepped_integer_is_checked(values: Any) -> None:
    world, one = opened()
    assert refusal(world.take(one, loop(scalars=((0, values),)))) == "bad_binding"


@pytest.mark.parametrize(
    ("starts", "iterations"), [(((0, 1),), 7), (((1, 1),), 2), (((0, 0), (1, 0)), MAX_ITERATIONS), (((0, (0, 6)),), 99)]
)
def test_starts_may_step_to_the_end_of_their_axis(starts: Any, iterations: int) -> None:
    world, one = opened()
    world.take(one, window(iterations, starts))
    assert len(one.queue) == 1


@pytest.mark.parametrize(
    ("starts", "iterations"),
    [
        (((0, 1),), 8),
        (((1, 1),), 3),
        (((0, 1), (1, 1)), 3),
        (((0, -1),), 2),
        (((0, 2**62),), 2),
        (((0, -(2**63)),), MAX_ITERATIONS),
        (((1, (0, 1, 2)),), 3),
        (((0, (0, 0.0)),), 2),
        (((0, (0, True)),), 2),
        (((2, 0),), 2),
    ],
)
def test_starts_that_step_out_of_their_axis_are_refused(starts: Any, iterations: int) -> None:
    world, one = opened()
    assert refusal(world.take(one, window(iterations, starts))) == "bad_binding"
    assert not one.queue


@pytest.mark.parametrize(
    ("first", "steps", "iterations"),
    [
        (2**64 - 1, 1, 2),
        (2**63 - 1, 1, 2),
        (0, -(2**63), 3),
        (0, 2**62, MAX_ITERATIONS),
        (0, (0, 2**64 - 1), 2),
    ],
)
def test_starts_of_slices_without_elements_fit_64_bits_in_all_iterations(
    first: int, steps: Any, iterations: int
) -> None:
    world, one = opened()
    world.take(one, new(EMPTY, of_nothing()))
    entry = loop_of(Segment(EMPTY, BASE, (ROWS,), (), (first,), ()), iterations, OPS, (1,), starts=((0, steps),))
    assert refusal(world.take(one, entry)) == "bad_binding"
    assert not one.queue


# ---- handles ----

LAST_RESULT = FIRST_UPLOAD - 1


@pytest.mark.parametrize(
    ("base", "handle_stride", "iterations"),
    [
        (LAST_RESULT - 7, OPS, 4),
        (LAST_RESULT - 1, 0, MAX_ITERATIONS),
        (HANDLES_PER_RECORDER, (LAST_RESULT - 1) // (MAX_ITERATIONS - 1), MAX_ITERATIONS),
    ],
)
def test_results_may_have_the_last_handles_below_the_uploads(base: int, handle_stride: int, iterations: int) -> None:
    world, one = opened()
    world.take(one, loop(iterations, base=base, handle_stride=handle_stride))
    assert len(one.queue) == 1


@pytest.mark.parametrize(
    ("base", "handle_stride", "iterations"),
    [
        (LAST_RESULT - 6, OPS, 4),
        (LAST_RESULT, 0, 1),
        (FIRST_UPLOAD + 1, 0, 1),
        (0, HANDLES_PER_RECORDER, 2),  # the results of another recorder
        (0, FIRST_UPLOAD, 2),
        (0, 2**63 - 1, MAX_ITERATIONS),
        (2**63 - 2, 1, 2),
        (0, OPS * 65, MAX_ITERATIONS),
    ],
)
def test_results_with_the_handles_of_others_end_the_session(base: int, handle_stride: int, iterations: int) -> None:
    world, one = opened()
    with pytest.raises(CaseError, match="handles of other values") as caught:
        world.take(one, loop(iterations, base=base, handle_stride=handle_stride))
    assert caught.value.case.name == "undecodable_frame"


def test_a_result_with_the_handle_of_a_value_ends_the_session() -> None:
    world, one = opened()
    world.take(one, loop(4, base=BASE + 4, kept=(1, 0)))
    with pytest.raises(CaseError, match="exists already"):
        world.take(one, loop(10, kept=(10, 0)))


def test_a_stepped_handle_that_names_nothing_fails_the_results_from_its_iteration_on() -> None:
    world, one = opened()
    world.take(one, loop(kept=(4, 4), inputs=((2, (STEP, X, 77, X)),)), *[Fetch(n, BASE + n) for n in range(8)])
    assert answers(one).keys() == {5, 7}
    assert {case for case, _ in answers(one).values()} == {"unknown_handle"}


def test_a_stepped_value_of_another_shape_fails_the_results_from_its_iteration_on() -> None:
    world, one = opened()
    world.take(one, loop(kept=(4, 4), inputs=((2, (STEP, X, STEP, SHORT)),)), *[Fetch(n, BASE + n) for n in range(8)])
    assert {fetch: case for fetch, (case, _) in answers(one).items()} == {7: "bad_binding"}


@pytest.mark.parametrize("handle", [-1, -2, -(2**63)])
def test_a_stepped_handle_never_names_what_is_hidden(handle: int) -> None:
    world, one = opened()
    world.take(one, loop(kept=(0, 0)))
    assert {hidden for hidden in one.values if hidden < 0} == {-1, -2, -3}
    world.take(one, loop(base=900, kept=(4, 4), inputs=((2, (STEP, handle)),)), Fetch(1, 903))
    assert answers(one)[1][0] == "unknown_handle"


OF_ITS_OWN = loop(kept=(4, 4), inputs=((2, (STEP, BASE + 1)),))  # takes in iteration 1 what iteration 0 computes


def test_a_stepped_handle_of_the_loops_own_results_is_a_bad_binding() -> None:
    world, one = opened()
    assert refusal(world.take(one, OF_ITS_OWN)) == "bad_binding"


def test_more_handles_than_iterations_are_refused() -> None:
    world, one = opened()
    assert refusal(world.take(one, loop(2, inputs=((2, (STEP, X, STEP)),)))) == "bad_binding"


@pytest.mark.parametrize(
    "entry", [loop(2, scalars=((0, (1, 2, 3)),)), window(2, ((0, (0, 1, 2)),))], ids=["scalars", "starts"]
)
def test_more_values_than_iterations_are_refused(entry: Segment) -> None:
    world, one = opened()
    assert refusal(world.take(one, entry)) == "bad_binding"


@pytest.mark.parametrize("dying", [(3,), (-1,), (0, 0), (5,), (2**62,)])
def test_positions_that_cannot_die_end_the_session(dying: tuple[int, ...]) -> None:
    world, one = opened()
    with pytest.raises(CaseError, match="undecodable_frame"):
        world.take(one, loop(dying=dying))


def test_a_refused_loop_lets_the_values_die_that_it_steps_through() -> None:
    world, one = opened(Limits(live_bytes=30 * SIZE_BYTES, array_bytes=30 * SIZE_BYTES))
    world.take(one, loop(100, kept=(100, 1), inputs=((2, (STEP, X)),), dying=(3,)))
    assert X not in one.values


# ---- how much is stored ----


def test_a_loop_may_store_as_many_results_as_are_allowed() -> None:
    world, one = opened()
    world.take(one, loop(MAX_STORED, kept=(MAX_STORED - 1, 1)))
    assert len(one.queue) == 1
    assert one.in_flight == (CREDIT.ops, MAX_STORED * SIZE_BYTES, 1)


def test_more_handles_than_a_session_may_have_are_refused() -> None:
    world, one = opened(Limits(handles=50))
    effects = world.take(one, loop(100, kept=(50, 1)))
    assert refusal(effects) == "quota_handles"
    assert not one.queue


def test_bytes_of_all_stored_results_count_together() -> None:
    world, one = opened(Limits(live_bytes=40 * SIZE_BYTES, array_bytes=40 * SIZE_BYTES))
    left = 40 * SIZE_BYTES - one.live_bytes
    entry = loop(100, kept=(left // SIZE_BYTES, 1))
    assert refusal(world.take(one, entry)) == "quota_live_bytes"
    assert not one.queue


def test_bytes_of_hidden_values_count_too() -> None:
    world, one = opened(Limits(live_bytes=20 * SIZE_BYTES, array_bytes=20 * SIZE_BYTES))
    for number in range(8):
        world.take(one, loop(base=BASE + 1000 * number, kept=(0, 0)))
    assert 17 * SIZE_BYTES < one.live_bytes <= 20 * SIZE_BYTES


@pytest.mark.parametrize("inputs", [(COUNT, X, 999), (COUNT, 999, 999)])
def test_results_that_fail_for_one_reason_make_no_value(inputs: tuple[int, ...]) -> None:
    world, one = opened()
    before = {*one.values}
    entry = loop(MAX_STORED, kept=(0, MAX_STORED))
    world.take(one, entry._replace(inputs=inputs))
    assert {*one.values} == before
    assert one.failed.count == MAX_STORED
    assert "handle 999 " in failure(one, BASE + 1).text
    assert one.in_flight == (0, 0, 0)


# ---- loops of programs that were refused ----


def test_a_loop_of_a_refused_program_fails_what_the_client_keeps() -> None:
    world, one = opened(Limits(program_operands=4))
    world.take(one, new(ODD, build([VECTOR] * 5, [], [op("negative", 0)], (0,))))
    first = Segment(ODD, BASE, (X,) * 5, (), (), ())
    world.take(one, loop_of(first, 3, 1, (2,)), *[Fetch(n, BASE + n) for n in range(3)])
    assert failure(one, BASE + 1).case.name == failure(one, BASE + 2).case.name
    assert answers(one)[0][0] == "unknown_handle"
    assert one.in_flight == (0, 0, 0)


def test_a_loop_of_a_refused_program_keeps_to_the_handles_of_results() -> None:
    world, one = opened(Limits(program_operands=4))
    world.take(one, new(ODD, build([VECTOR] * 5, [], [op("negative", 0)], (0,))))
    with pytest.raises(CaseError, match="handles of other values"):
        world.take(one, loop_of(Segment(ODD, BASE, (X,) * 5, (), (), ()), 3, FIRST_UPLOAD, (1,)))
