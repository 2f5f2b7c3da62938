"""Iterations, step by step: where values lie, what is given back when, and that any of them may begin again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program, build
from fusewire_server.device.unfused.run import UnfusedRun
from fusewire_server.scheduling.time_shares import Progress
from fusewire_server.sessions.session import Row
from tests.kernels.loops_of_note import leaky, recurrent, with_memory
from tests.kernels.programs import Array, Writer, meaning, random_inputs, random_program
from tests.server.device.runs_alone import AT_ONCE_NS, MOST_SLICES, NEVER_NS, RunsAlone, assert_same_arrays, end
from tests.server.parts import SIZE_BYTES, VECTOR, chain, entry_of, op

NUMBERS = np.array([1, 2, 3, 4], np.float32)
ITERATIONS = 5


def at_once(_: RunsAlone, run: UnfusedRun) -> None:
    assert run.go_on(NEVER_NS) is Progress.ENDED


def step_by_step(_: RunsAlone, run: UnfusedRun) -> None:
    end(run, AT_ONCE_NS)


def begun_again(runs: RunsAlone, run: UnfusedRun) -> None:
    """Ends a run that is stopped after each number of steps in turn, and begins the iteration again each time."""
    for steps in range(MOST_SLICES):
        for _ in range(steps):
            if run.go_on(AT_ONCE_NS) is Progress.ENDED:
                return
        for temporaries in runs.memory._temporaries:
            temporaries.stop()
        assert not runs.temporary_bytes


HOW: dict[str, Callable[[RunsAlone, UnfusedRun], None]] = {
    "at once": at_once,
    "step by step": step_by_step,
    "begun again after each step": begun_again,
}
ways = pytest.mark.parametrize("how", HOW.values(), ids=HOW)


def looped(
    program: Program,
    iterations: int,
    inputs: Sequence[Array],
    scalars: Sequence[int | float] = (),
    starts_of: Callable[[int], Sequence[int]] = lambda _: (),
) -> list[Array]:
    """The results of the last iteration, by the NumPy twins of each. What is carried is carried over one iteration."""
    taken, results = [*inputs], list[Array]()
    for iteration in range(iterations):
        results = meaning(program, taken, scalars, starts_of(iteration))
        for number, source in program.carried:
            taken[number] = results[program.live_positions[source - program.first_result]]
    return results


# ---- loops ----


@ways
@pytest.mark.parametrize("body", [recurrent, leaky, with_memory])
def test_a_loop_gives_what_its_iterations_do_one_after_another(
    body: Callable[[int, int], Program], how: Callable[[RunsAlone, UnfusedRun], None]
) -> None:
    runs, program = RunsAlone(), body(2, 4)
    inputs, scalars = random_inputs(program), (0.5,) * len(program.scalars)
    row = runs.loop(entry_of(program), ITERATIONS, inputs, scalars)
    run = runs.begin(row)
    how(runs, run)
    found = [runs.array(value) for value in row.outputs[: len(program.live)]]
    expected = looped(program, ITERATIONS, inputs, scalars)
    assert_same_arrays(found, expected)
    runs.forget(row)
    runs.assert_nothing_is_held()


def changing_in_place() -> Program:
    """y[i] = y.sum() + y[0] and, of the y before that, its greatest element. Two slices, one of which moves."""
    writer = Writer()
    y = writer.input(4)
    first = writer.slice(y, (0,), (1,), dropped=(0,))
    following = writer.assign(y, writer.add(writer.sum(y, axes=(0,), keepdims=False), first), 0)
    return writer.program(following, writer.max(y, axes=(0,), keepdims=False), carried=[(y, following)])


def in_place(runs: RunsAlone, program: Program) -> Row:
    """A loop whose array has one value, as if a plan that was dropped since had changed the array in place."""
    row = runs.loop(entry_of(program), 4, [NUMBERS], (), (0, 0), stepped_starts=((1, 1),))
    change_in_place(row)
    return row


def change_in_place(row: Row) -> None:
    assert row.iterations is not None
    row.iterations.rings = [ring[:1] for ring in row.iterations.rings]
    row.outputs = row.iterations.outputs


@ways
def test_a_loop_that_changes_an_array_in_place_gives_what_one_that_copies_it_does(
    how: Callable[[RunsAlone, UnfusedRun], None],
) -> None:
    runs, program = RunsAlone(), changing_in_place()
    row = in_place(runs, program)
    run = runs.begin(row)
    how(runs, run)
    found = [runs.array(value) for value in row.outputs]
    expected = looped(program, 4, [NUMBERS], (), lambda iteration: (0, iteration))
    assert_same_arrays(found, expected)
    assert runs.array(row.inputs[0]).tolist() == NUMBERS.tolist()
    runs.forget(row)
    runs.assert_nothing_is_held()


@given(st.integers(0, 1 << 30), st.booleans(), st.sampled_from([*HOW]))
def test_a_random_loop_gives_what_its_iterations_do_whether_in_place_or_not(
    seed: int, is_in_place: bool, how: str
) -> None:
    drawn = random_program(seed, most_ops=12)
    runs, program = RunsAlone(), looping(drawn.program)
    inputs, scalars, starts = random_inputs(program, seed), drawn.scalars, drawn.starts
    row = runs.loop(entry_of(program), 3, inputs, scalars, starts)
    if is_in_place:
        change_in_place(row)
    run = runs.begin(row)
    HOW[how](runs, run)
    assert not run.failed
    found = [runs.array(value) for value in row.outputs[: len(program.live)]]
    expected = looped(program, 3, inputs, scalars, lambda _: starts)
    assert_same_arrays(found, expected)
    runs.forget(row)
    runs.assert_nothing_is_held()


def looping(body: Program) -> Program:
    """A program whose inputs take the live results that fit them, the last first."""
    results = [(body.first_result + index, body.result_spec(index)) for index in reversed(body.live)]
    carried = []
    for number, spec in enumerate(body.inputs):
        source = next((result for result, fitting in results if fitting == spec), None)
        if source is not None:
            carried.append((number, source))
    return build(body.inputs, body.scalars, body.ops, body.live, carried)


def test_a_loop_goes_on_in_the_next_submission_where_it_was() -> None:
    runs, program = RunsAlone(), changing_in_place()
    row = in_place(runs, program)
    for span in (range(1), range(1, 3), range(3, 4)):
        assert not runs.run(row, spans={row: span}).failed
        assert not runs.temporary_bytes
    expected = looped(program, 4, [NUMBERS], (), lambda iteration: (0, iteration))
    assert_same_arrays([runs.array(value) for value in row.outputs], expected)


def test_scalars_that_step_are_those_of_each_iteration() -> None:
    runs, writer = RunsAlone(), Writer()
    x, s = writer.input(4), writer.scalar()
    following = writer.add(writer.multiply(x, s), s)
    entry = entry_of(writer.program(following, carried=[(x, following)]))
    row = runs.loop(entry, 3, [NUMBERS], (2.0,), stepped_scalars=((0, (2.0, 3.0)),))
    assert not runs.run(row).failed
    expected = ((NUMBERS * 2 + 2) * 3 + 3) * 2 + 2
    assert runs.array(row.outputs[0]).tolist() == expected.tolist()


# ---- one iteration ----


def test_starts_are_those_of_the_op_whatever_ops_slice_before_it() -> None:
    writer = Writer()
    x = writer.input(4)
    parts = [writer.slice(x, (0,), (2,)) for _ in range(3)]
    found = RunsAlone().results(writer.program(*parts), [NUMBERS], (), (2, 0, 1))
    assert [each.tolist() for each in found] == [[3, 4], [1, 2], [2, 3]]


def test_scalars_of_all_dtypes_lie_beside_constants() -> None:
    writer = Writer()
    x = writer.input(4)
    integer, s = writer.scalar(dtypes.int64), writer.scalar()
    softmax = writer.softmax(writer.multiply(x, s), axes=(0,))
    program = writer.program(softmax, writer.negative(integer), writer.mean(x, axes=(0,), keepdims=False))
    found = RunsAlone().results(program, [NUMBERS], (1 << 40, 0.5))
    expected = meaning(program, [NUMBERS], (1 << 40, 0.5))
    assert_same_arrays(found, expected)


def test_a_result_is_given_back_behind_its_last_use() -> None:
    runs = RunsAlone()
    row = runs.row(entry_of(chain(["negative"] * 10)), [NUMBERS])
    runs.run(row)
    assert runs.memory.count().peak_bytes == 4 * SIZE_BYTES  # input, result, what an op reads, and what it computes
    assert runs.memory.count().live_bytes == 2 * SIZE_BYTES


def test_a_result_that_nothing_reads_is_given_back_at_once() -> None:
    runs, entry = RunsAlone(), entry_of(build([VECTOR], [], [op("negative", 0), op("abs", 0), op("exp", 0)], (2,)))
    row = runs.row(entry, [NUMBERS])
    runs.run(row)
    assert runs.memory.count().peak_bytes == 3 * SIZE_BYTES


def test_the_steps_of_a_composite_op_give_back_what_later_steps_do_not_read() -> None:
    runs, writer = RunsAlone(), Writer()
    x = writer.input(1000)
    row = runs.row(entry_of(writer.program(writer.softmax(x, axes=(0,)))), [np.ones(1000, np.float32)])
    runs.run(row)
    assert runs.memory.count().peak_bytes < 5 * row.outputs[0].size_bytes
    assert not runs.temporary_bytes
