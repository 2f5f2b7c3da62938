"""Arrays of which each iteration writes a part: which of them are copied before a persistent kernel runs."""

from __future__ import annotations

import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.plan.plan import InputColumn, OutputColumn, UpdatedArray, ViewColumn
from fusewire_kernels.plan.plan_codec import decode_plan, encode_plan
from fusewire_protos.programs.program import Program
from tests.kernels.loops_of_note import along_rows, gates_along_rows, keeping
from tests.kernels.programs import Writer


def pointwise() -> Program:
    writer = Writer()
    h, y = writer.input(3), writer.input(4, 3)
    following = writer.tanh(h)
    kept = writer.assign(y, following, axis=0)
    return writer.program(following, kept, carried=[(h, following), (y, kept)])


def of_several_rows() -> Program:
    writer = Writer()
    h, y = writer.input(2, 3), writer.input(4, 3)
    following = writer.tanh(h)
    kept = writer.op("assign_slice", y, following, attributes=((0,), (2,), (1,), ()))
    return writer.program(following, kept, carried=[(h, following), (y, kept)])


def of_views(*shape: int) -> Program:
    """The elements of a view of `shape`, three apart, are replaced by computed ones."""
    writer = Writer()
    h, y = writer.input(*shape), writer.input(12)
    following = writer.tanh(h)
    kept = writer.assign_strided(y, following, shape=shape, strides=(3,) * len(shape))
    return writer.program(following, kept, carried=[(h, following), (y, kept)])


def of_two_rows() -> Program:
    writer = Writer()
    h, y = writer.input(3), writer.input(4, 3)
    following = writer.tanh(h)
    kept = writer.assign(writer.assign(y, h, axis=0), following, axis=0)
    return writer.program(following, kept, carried=[(h, following), (y, kept)])


def read_before() -> Program:
    writer = Writer()
    h, y, w = writer.input(4, 3), writer.input(2, 4, 3), writer.input(3, 3)
    following = writer.tanh(writer.matmul(writer.add(h, writer.slice(y, (0,), (1,), dropped=(0,))), w))
    kept = writer.assign(y, following, axis=0)
    return writer.program(following, kept, carried=[(h, following), (y, kept)])


def read_across() -> Program:
    writer = Writer()
    h, y, w = writer.input(4, 4), writer.input(8, 4, 4), writer.input(4, 4)
    column = writer.transpose(writer.slice(y, (0,), (1,), dropped=(0,)), permutation=(1, 0))
    following = writer.tanh(writer.matmul(writer.add(h, column), w))
    kept = writer.assign(y, following, axis=0)
    return writer.program(following, kept, carried=[(h, following), (y, kept)])


def read_after() -> Program:
    writer = Writer()
    h, y, w = writer.input(4, 3), writer.input(2, 4, 3), writer.input(3, 3)
    kept = writer.assign(y, h, axis=0)
    following = writer.tanh(writer.matmul(writer.slice(kept, (0,), (1,), dropped=(0,)), w))
    return writer.program(following, kept, carried=[(h, following), (y, kept)])


@pytest.mark.parametrize("program", [keeping(1, 64, 5), keeping(40, 33, 2), pointwise(), of_views(1)])
def test_an_array_of_which_each_iteration_writes_a_row_is_copied_before(program: Program) -> None:
    plan = build_plan(program, "cuda")
    assert plan.persistent is not None
    columns, written = plan.columns, plan.persistent.operands[-plan.persistent.outputs :]
    inputs = [place for place, column in enumerate(columns) if isinstance(column, InputColumn)]
    outputs = [place for place, column in enumerate(columns) if isinstance(column, OutputColumn)]
    expected = [
        UpdatedArray(inputs[number], outputs[position], program.live_sizes[position])
        for position, (number, _) in enumerate(program.carried)
    ]
    assert [*plan.persistent.updated] == expected[1:]
    parts = [column for ref in written if isinstance(column := columns[ref.column], ViewColumn)]
    assert [part.base_column for part in parts] == [array.output_column for array in plan.persistent.updated]


def test_an_array_may_be_all_that_a_loop_carries() -> None:
    writer = Writer()
    x, y = writer.input(4, 3), writer.input(4, 3)
    kept = writer.assign(y, writer.tanh(writer.slice(x, (0,), (1,), dropped=(0,))), axis=0)
    launch = build_plan(writer.program(kept, carried=[(y, kept)]), "cuda").persistent
    assert launch is not None
    assert (launch.carried, len(launch.updated)) == ((), 1)


@pytest.mark.parametrize(
    "program", [along_rows(1, 64, 5), along_rows(40, 33, 9), gates_along_rows(2, 64, 5), read_before()]
)
def test_a_row_that_is_read_must_be_the_one_that_was_written_before(program: Program) -> None:
    plan = build_plan(program, "cuda")
    assert plan.persistent is not None
    assert len(plan.persistent.updated) == 1
    base = {name: getattr(plan.persistent.updated[0], name) for name in ("input_column", "output_column")}
    for read, written in plan.persistent.follows:
        parts = [plan.columns[plan.persistent.operands[number].column] for number in (read, written)]
        assert [part.base_column for part in parts if isinstance(part, ViewColumn)] == [*base.values()]
        assert read in plan.persistent.carried
    assert plan.persistent.follows
    assert len({*plan.persistent.follows}) == len(plan.persistent.follows)


@pytest.mark.parametrize("program", [of_several_rows(), of_views(2), of_two_rows(), read_across(), read_after()])
def test_another_is_copied_in_each_iteration_which_is_launched(program: Program) -> None:
    plan = build_plan(program, "cuda")
    assert plan.persistent is None
    assert "it changes a part of an array that it also writes or reads elsewhere" in plan.records.why_launched


def test_one_that_other_processes_have_planned_is_the_same() -> None:
    plan = build_plan(along_rows(1, 64, 5), "cuda")
    assert decode_plan(encode_plan(plan)).persistent == plan.persistent
