"""What the entry of a loop comes to: its values, its credit, and what no correct client sends."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.null import NullDevice
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import (
    FIRST_UPLOAD,
    Cancel,
    Fetch,
    Free,
    Segment,
    decode_entries,
    encode_entries,
)
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program, ProgramOp, build
from fusewire_server.config.config import Limits
from fusewire_server.sessions.rows import fail_from_inputs
from fusewire_server.sessions.session import Row, Session, Value, ValueState
from tests.segments import loop_of
from tests.server.parts import CREDIT, SIZE_BYTES, VECTOR, new, op, upload_beside
from tests.server.tables import World, answers

DECAY, WINDOWS, OLDER, KEEPING = 20, 21, 22, 23  # numbers of programs
X, STEP, ROWS = 10, 11, 12  # handles of inputs
OPS = 2


def decay() -> Program:
    """x = x * factor + step, of which the sum is carried and the product may be kept."""
    ops = [op("multiply", 0, 2), op("add", 3, 1)]
    return build([VECTOR, VECTOR], [dtypes.float32], ops, (0, 1), [(0, 4)])


def windows() -> Program:
    """x = x + rows[start : start + 1] * number, with an integer."""
    region = ProgramOp(catalogue.BY_NAME["slice"], (1,), ((0,), (1,), (1,), ()))
    ops = [region, op("add", 0, 3)]
    return build([VECTOR, Spec(dtypes.float32, (8, 4))], [dtypes.int32], ops, (1,), ())


def older() -> Program:
    """x = tanh(the x before the last)."""
    return build([VECTOR, VECTOR], [], [op("tanh", 0)], (0,), [(0, 1), (1, 2)])


def keeping(*, carried_twice: bool = False) -> Program:
    """y[start::-1] = tanh(x), with y carried, and perhaps x too."""
    ops = [op("tanh", 1), ProgramOp(catalogue.BY_NAME["assign_slice"], (0, 2), ((0,), (4,), (-1,), ()))]
    return build([VECTOR, VECTOR], [], ops, (1,), [(0, 3), (1, 3)] if carried_twice else [(0, 3)])


def with_plan(one: Session, number: int) -> None:
    """Lets a program of a session have its plan."""
    entry = one.programs[number]
    entry.loaded = NullDevice().load(build_plan(entry.program, "c"), ())


def loop_of_older(iterations: int, kept: int) -> Segment:
    return loop_of(Segment(OLDER, 100, (X, STEP), (), (), ()), iterations, 1, (kept,))


def loop(
    iterations: int = 10,
    *,
    kept: tuple[int, ...] = (0, 1),
    base: int = 100,
    handle_stride: int = OPS,
    dying: tuple[int, ...] = (),
    first: tuple[int, ...] = (X, STEP),
    **stepped: Any,
) -> Segment:
    return loop_of(Segment(DECAY, base, first, (0.5,), (), dying), iterations, handle_stride, kept, **stepped)


def opened(limits: Limits | None = None) -> tuple[World, Session]:
    world = World() if limits is None else World(limits)
    one = world.session()
    world.take(one, new(DECAY, decay()))
    return world, one


def row_of(one: Session) -> Row:
    (row,) = one.queue
    return row


def named(one: Session) -> set[int]:
    """The handles of the client's values, without those of the inputs."""
    return {handle for handle in one.values if handle >= 100}


def hidden(one: Session) -> list[Value]:
    return [value for handle, value in one.values.items() if handle < 0]


def test_a_loop_is_one_row_with_the_kept_results_and_room_for_what_is_carried() -> None:
    world, one = opened()
    world.take(one, loop())
    assert named(one) == {100 + 9 * OPS + 1}
    assert len(hidden(one)) == 2  # the product, and the second value of the ring of the sum
    assert row_of(one).iterations is not None


def test_handles_without_a_stride_are_those_of_the_last_iteration() -> None:
    world, one = opened()
    world.take(one, loop(handle_stride=0))
    assert named(one) == {101}


@pytest.mark.parametrize(("kept", "kept_bytes"), [((3, 3), 6), ((0, 0), 0), ((1, 1), 2)])
def test_a_loop_of_a_program_beyond_a_quota_takes_the_credit_that_its_client_counts(
    kept: tuple[int, ...], kept_bytes: int
) -> None:
    world = World()
    one = world.session()
    world.programs.bounds = world.programs.bounds._replace(session_bytes=1)
    world.take(one, new(DECAY, decay()))
    before = one.admitted
    world.take(one, loop(9, kept=kept))
    taken = [now - then for now, then in zip(one.admitted, before, strict=True)]
    assert taken == [9 * OPS, kept_bytes * SIZE_BYTES, 1]
    assert one.in_flight == (0, 0, 0)


def test_results_that_are_kept_of_each_iteration_have_a_value_each() -> None:
    world, one = opened()
    world.take(one, loop(4, kept=(4, 1)))
    assert named(one) == {100, 102, 104, 106, 107}


def test_results_that_are_kept_of_the_last_iterations_have_a_value_for_each_of_these() -> None:
    world, one = opened()
    world.take(one, loop(9, kept=(3, 2)))
    assert named(one) == {100 + OPS * 6, 100 + OPS * 7, 100 + OPS * 8, 101 + OPS * 7, 101 + OPS * 8}
    assert not hidden(one)  # the two values of the sum are a ring long enough for what is carried
    assert one.in_flight == (9 * OPS, 5 * SIZE_BYTES, 1)
    iterations = row_of(one).iterations
    assert iterations is not None
    assert {value.handle: iteration for value, iteration in iterations.results()} == {
        handle: (handle - 100) // OPS for handle in named(one)
    }


@pytest.mark.parametrize(
    ("is_planned", "carried_twice", "kept", "values"),
    [(True, False, 1, 1), (True, False, 0, 1), (False, False, 1, 2), (True, True, 1, 2), (True, False, 3, 3)],
)
def test_a_result_that_the_plan_updates_in_place_has_one_value_unless_more_is_needed(
    *, is_planned: bool, carried_twice: bool, kept: int, values: int
) -> None:
    world, one = opened()
    world.take(one, new(KEEPING, keeping(carried_twice=carried_twice)))
    if is_planned:
        with_plan(one, KEEPING)
    world.take(one, loop_of(Segment(KEEPING, 100, (X, STEP), (), (3,), ()), 5, OPS, (kept,)))
    assert len(named(one)) + len(hidden(one)) == values
    iterations = [row_of(one).at(number) for number in range(5)]
    assert iterations[0].inputs[0].handle == X
    for before, after in itertools.pairwise(iterations):
        assert after.inputs[0] is before.outputs[0]


@pytest.mark.parametrize("kept", [0, 1, 2, 3, 5])
def test_a_result_of_two_iterations_before_is_not_written_over(kept: int) -> None:
    world, one = opened()
    world.take(one, new(OLDER, older()), loop_of_older(5, kept))
    assert len(one.values) == 2 + max(kept, 3)  # the inputs, and a ring
    iterations = [row_of(one).at(number) for number in range(5)]
    assert [each.inputs[0].handle for each in iterations[:2]] == [X, STEP]
    for number in range(2, 5):
        assert iterations[number].inputs[0] is iterations[number - 2].outputs[0]
        assert iterations[number].outputs[0] not in {iterations[back].outputs[0] for back in (number - 1, number - 2)}
    handles = [each.outputs[0].handle for each in iterations]
    assert handles[5 - kept :] == [100 + number for number in range(5 - kept, 5)]


def test_each_iteration_takes_what_the_one_before_wrote_and_writes_over_none_of_it() -> None:
    world, one = opened()
    world.take(one, loop(5, kept=(5, 1)))
    row = row_of(one)
    iterations = [row.at(number) for number in range(5)]
    assert iterations[0].inputs[0].handle == X
    for before, after in itertools.pairwise(iterations):
        assert after.inputs[0] is before.outputs[1]
        assert after.outputs[1] is not after.inputs[0]
    assert [each.outputs[0].handle for each in iterations] == [100, 102, 104, 106, 108]
    assert iterations[-1].outputs[1].handle == 109


def test_a_loop_takes_credit_for_all_its_ops_but_no_more_than_there_is() -> None:
    world, one = opened()
    world.take(one, loop(10, kept=(10, 1)))
    assert one.in_flight == (10 * OPS, 11 * SIZE_BYTES, 1)
    world, one = opened()
    world.take(one, loop(1 << 30))
    assert one.in_flight == (CREDIT.ops, SIZE_BYTES, 1)


def test_a_stepped_input_is_held_for_each_iteration() -> None:
    world, one = opened()
    world.take(one, loop(3, inputs=((1, (STEP, X, STEP)),)))
    row = row_of(one)
    assert [row.at(number).inputs[1].handle for number in range(3)] == [STEP, X, STEP]


def test_stepped_scalars_repeat_or_change_by_a_difference() -> None:
    world, one = opened()
    world.take(one, loop(4, scalars=((0, (0.5, 0.25)),)))
    assert [row_of(one).at(number).scalars for number in range(4)] == [(0.5,), (0.25,), (0.5,), (0.25,)]


def test_a_failed_initial_value_fails_what_depends_on_it_in_every_iteration() -> None:
    world, one = opened()
    world.take(one, loop(3, first=(77, STEP), kept=(3, 1)), *[Fetch(n, 100 + n) for n in (0, 2, 4, 5)])
    assert {case for case, _ in answers(one).values()} == {"unknown_handle"}
    assert len(answers(one)) == 4


def test_a_failed_stepped_value_fails_the_results_from_its_iteration_on() -> None:
    world, one = opened()
    world.take(
        one,
        loop(4, kept=(4, 4), inputs=((1, (STEP, STEP, 77, STEP)),)),
        *[Fetch(number, 100 + number) for number in range(8)],
    )
    assert {fetch for fetch, (case, _) in answers(one).items() if case == "unknown_handle"} == {5, 6, 7}
    assert len(one.queue) == 1


@pytest.mark.parametrize("iterations", [1, 3])
def test_a_value_that_fails_in_the_last_iteration_leaves_what_takes_it_an_iteration_later(iterations: int) -> None:
    world, one = opened()
    ops = [op("subtract", 0, 2), op("negative", 1)]  # x = x − (the y before), and −y
    world.take(one, new(OLDER, build([VECTOR] * 3, [], ops, (0, 1), [(0, 3), (2, 1)])))
    first = Segment(OLDER, 100, (X, 77 if iterations == 1 else STEP, STEP), (), (), ())
    stepped = () if iterations == 1 else ((1, (STEP,) * (iterations - 1) + (77,)),)
    world.take(one, loop_of(first, iterations, 2, (1, 1), inputs=stepped))
    last = 100 + 2 * (iterations - 1)
    assert one.values[last].state is not ValueState.FAILED
    assert one.values[last + 1].state is ValueState.FAILED


def test_an_upload_that_fails_before_the_loop_runs_fails_its_results() -> None:
    world, one = opened()
    world.take(one, upload_beside(30), loop(3, first=(30, STEP)), Fetch(1, 105))
    assert len(one.held_back) == 1
    row = next(iter(one.held_back))
    row.inputs[0].state = ValueState.READY
    one.values[30].state = ValueState.FAILED
    one.values[30].failure = world.take(one, loop(1, base=900, first=(78, STEP))).failures[0]
    fail_from_inputs(row, [])
    assert row.iterations is not None
    assert all(value.state is ValueState.FAILED for value, _ in row.iterations.results())


def test_a_cancelled_loop_leaves_nothing_hidden() -> None:
    world, one = opened()
    effects = world.take(one, loop(), Cancel())
    assert hidden(one) == []
    assert effects.released == []
    assert one.in_flight == (0, 0, 0)


def test_a_loop_that_has_begun_releases_its_memory_when_it_is_cancelled() -> None:
    world, one = opened()
    world.take(one, loop())
    row = row_of(one)
    assert row.iterations is not None
    row.iterations.begun = 3
    effects = world.take(one, Cancel())
    assert set(effects.released) >= set(row.outputs)


def test_a_client_cannot_free_what_is_hidden() -> None:
    world, one = opened()
    world.take(one, loop())
    with pytest.raises(CaseError, match="undecodable_frame"):
        decode_entries(encode_entries([Free((-1,))]))
    assert len(hidden(one)) == 2


def test_dying_positions_count_the_stepped_inputs_last() -> None:
    world, one = opened()
    world.take(one, upload_beside(30), loop(2, dying=(2,), inputs=((1, (STEP, 30)),)))
    assert not one.values[30].is_named
    assert one.values[STEP].is_named


REFUSED = [
    (loop(kept=(1,)), "1 results are kept or not"),
    (loop(kept=(10, 1), handle_stride=1), "1 apart"),
    (loop(kept=(0, 2), handle_stride=1), "1 apart"),
    (loop(first=(X,)), "1 inputs; the program has 2"),
    (loop(inputs=((0, (X, STEP)),)), "carried"),
    (loop(inputs=((2, (X, STEP)),)), "input 2 is stepped"),
    (loop(inputs=((1, (X, STEP)),)), "from its first on"),
    (loop(inputs=((1, 5),)), "not handles"),
    (loop(inputs=((1, (STEP, 0.5)),)), "not handles"),
    (loop(2, inputs=((1, (STEP, X, X)),)), "3 values in 2 iterations"),
    (loop(scalars=((0, 1),)), "does not change by a difference"),
    (loop(scalars=((1, (1.0,)),)), "scalar 1 is stepped"),
    (loop(starts=((0, 1),)), "start 0 is stepped"),
]


@pytest.mark.parametrize(("entry", "text"), REFUSED)
def test_bindings_that_do_not_fit_fail_the_results_and_not_the_session(entry: Segment, text: str) -> None:
    world, one = opened()
    effects = world.take(one, entry)
    (failure,) = effects.failures
    assert failure.case.name == "bad_binding"
    assert text in failure.text
    assert not one.queue
    assert one.in_flight == (0, 0, 0)


@pytest.mark.parametrize("base", [FIRST_UPLOAD - 5, 2**63 - 1])
def test_results_never_get_the_handles_of_uploads(base: int) -> None:
    world, one = opened()
    with pytest.raises(CaseError, match="handles of other values"):
        world.take(one, loop(10, base=base))


def test_more_stored_bytes_than_a_session_may_have_are_refused() -> None:
    world, one = opened(Limits(live_bytes=10 * SIZE_BYTES, array_bytes=10 * SIZE_BYTES))
    effects = world.take(one, loop(100, kept=(100, 1)), Fetch(1, 100))
    assert [failure.case.name for failure in effects.failures] == ["quota_live_bytes"]


@pytest.mark.parametrize("steps", [1, -1, (0, 4, 9), (0, -1)])
def test_windows_outside_their_axis_are_refused(steps: Any) -> None:
    world, one = opened()
    world.take(one, new(WINDOWS, windows()))
    entry = loop_of(Segment(WINDOWS, 100, (X, ROWS), (1,), (0, 0), ()), 9, OPS, (1,), starts=((0, steps),))
    effects = world.take(one, entry)
    assert "bad_binding" in {failure.case.name for failure in effects.failures}
