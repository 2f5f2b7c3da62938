"""Persistent kernels: which bodies of loops one kernel can run, and why others not."""

from __future__ import annotations

import pytest

from fusewire_kernels.build import build_plan, design
from fusewire_kernels.fusion.persistent.choice import persistent_of
from fusewire_kernels.fusion.persistent.loop_body import Persistent
from fusewire_kernels.ir.persistent import PersistentCluster, ReducedValue, Source
from fusewire_kernels.plan.plan import InputColumn, Plan, Term, ViewColumn
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program
from tests.kernels.loops_of_note import (
    bottleneck,
    descending,
    driven,
    gated,
    joined,
    joined_vectors,
    leaky,
    normalised,
    pointwise,
    recurrent,
    stacked,
    with_gates_together,
    with_memory,
    with_sums,
)
from tests.kernels.programs import Writer


def in_cuda(program: Program) -> Plan:
    return build_plan(program, "cuda")


def not_whole() -> Program:
    writer = Writer()
    h = writer.input(8)
    following = writer.concat(writer.tanh(writer.slice(h, (0,), (4,))), writer.exp(writer.slice(h, (0,), (4,))), axis=0)
    return writer.program(following, carried=[(h, following)])


def of_two_shapes() -> Program:
    writer = Writer()
    h, w, n = writer.input(4, 8), writer.input(8, 8), writer.input(3)
    following, counted = writer.tanh(writer.matmul(h, w)), writer.tanh(n)
    return writer.program(following, counted, carried=[(h, following), (n, counted)])


def finding_the_place_of_the_greatest() -> Program:
    writer = Writer()
    h = writer.input(4, 8)
    place = writer.astype(writer.argmax(h, axes=(1,), keepdims=True), dtype=dtypes.float32.code)
    following = writer.subtract(h, place)
    return writer.program(following, carried=[(h, following)])


def reducing_along_rows() -> Program:
    writer = Writer()
    h, w = writer.input(4, 8), writer.input(8, 8)
    multiplied = writer.matmul(h, w)
    following = writer.subtract(multiplied, writer.max(multiplied, axes=(0,), keepdims=True))
    return writer.program(following, carried=[(h, following)])


def reducing_one_column() -> Program:
    writer = Writer()
    h, w, v = writer.input(1, 1), writer.input(1, 8), writer.input(8, 1)
    following = writer.sum(writer.tanh(writer.matmul(writer.matmul(h, w), v)), axes=(1,), keepdims=True)
    return writer.program(following, carried=[(h, following)])


def of_no_elements(rows: int, columns: int, inner: int) -> Program:
    writer = Writer()
    h, w, v = writer.input(rows, columns), writer.input(columns, inner), writer.input(inner, columns)
    following = writer.tanh(writer.add(writer.matmul(writer.matmul(h, w), v), h))
    return writer.program(following, carried=[(h, following)])


def of_other_rows() -> Program:
    writer = Writer()
    h, w, x, u = writer.input(4, 8), writer.input(8, 8), writer.input(5, 8), writer.input(8, 6)
    following, another = writer.tanh(writer.matmul(h, w)), writer.matmul(x, u)
    return writer.program(following, another, carried=[(h, following)])


def spread_over_columns() -> Program:
    """One column is computed, by one thread a row, and then all others need it."""
    writer = Writer()
    h, w, v = writer.input(4, 8), writer.input(8, 8), writer.input(8, 1)
    following = writer.tanh(writer.add(writer.matmul(h, w), writer.matmul(h, v)))
    return writer.program(following, carried=[(h, following)])


def joined_along_rows() -> Program:
    writer = Writer()
    h, x, w = writer.input(4, 8), writer.input(4, 8), writer.input(8, 8)
    both = writer.matmul(writer.concat(h, x, axis=0), w)
    following = writer.tanh(writer.slice(both, (0,), (4,)))
    return writer.program(following, carried=[(h, following)])


def joined_with_one_column() -> Program:
    writer = Writer()
    h, one, w = writer.input(4, 8), writer.input(4, 1), writer.input(9, 8)
    following = writer.tanh(writer.matmul(writer.concat(h, one, axis=1), w))
    return writer.program(following, carried=[(h, following)])


def of_nine_products() -> Program:
    writer = Writer()
    h, w = writer.input(4, 8), writer.input(8, 8)
    following = h
    for _ in range(9):
        following = writer.tanh(writer.matmul(following, w))
    return writer.program(following, carried=[(h, following)])


def multiplied_by_what_it_computes() -> Program:
    writer = Writer()
    h, w = writer.input(8, 8), writer.input(8, 8)
    following = writer.tanh(writer.matmul(h, writer.tanh(writer.matmul(h, w))))
    return writer.program(following, carried=[(h, following)])


def of_products_that_turn() -> Program:
    writer = Writer()
    h, w, v = writer.input(8, 8), writer.input(8, 8), writer.input(8, 8)
    turned = writer.transpose(writer.tanh(writer.matmul(h, w)), permutation=(1, 0))
    following = writer.tanh(writer.add(writer.matmul(h, v), turned))
    return writer.program(following, carried=[(h, following)])


def of_doubles() -> Program:
    writer = Writer()
    h, w = (writer.input(*shape, dtype=dtypes.float64) for shape in ((4, 8), (8, 8)))
    following = writer.tanh(writer.matmul(h, w))
    return writer.program(following, carried=[(h, following)])


def multiplied_by_others() -> Program:
    writer = Writer()
    h, u, w = (writer.input(8, 8) for _ in range(3))
    following = writer.tanh(writer.add(h, writer.matmul(u, w)))
    return writer.program(following, carried=[(h, following)])


def turned() -> Program:
    writer = Writer()
    h = writer.input(8, 8)
    following = writer.tanh(writer.transpose(h, permutation=(1, 0)))
    return writer.program(following, carried=[(h, following)])


def over_two_iterations() -> Program:
    writer = Writer()
    a, b = writer.input(8), writer.input(8)
    following = writer.add(a, writer.tanh(b))
    return writer.program(following, carried=[(a, b), (b, following)])


def of_another_input() -> Program:
    writer = Writer()
    x, y, before = writer.input(8), writer.input(8), writer.input(8)
    following = writer.subtract(writer.add(x, y), before)
    return writer.program(following, carried=[(x, following), (before, y)])


def assigning_to_a_column(*, is_carried: bool) -> Program:
    writer = Writer()
    h, w, one_column = writer.input(2, 8), writer.input(8, 8), writer.input(8, 1)
    pushed = writer.tanh(writer.matmul(h, w))
    column = writer.tanh(writer.matmul(pushed, one_column))
    assigned = writer.op("assign_slice", pushed, column, attributes=((1,), (1,), (1,), ()))
    return writer.program(pushed, assigned, carried=[(h, assigned if is_carried else pushed)])


def assigned_as_a_whole() -> Program:
    """h[:] = tanh(h @ w), and y of one row, of which the row is h · s."""
    writer = Writer()
    h, w, y = writer.input(2, 8), writer.input(8, 8), writer.input(1, 2, 8)
    s = writer.scalar()
    whole = {"axes": (0, 1), "lengths": (2, 8), "steps": (1, 1), "dropped": ()}
    following = writer.assign_slice(h, writer.tanh(writer.matmul(h, w)), **whole)
    kept = writer.assign(y, writer.multiply(h, s), axis=0)
    return writer.program(following, kept, carried=[(h, following), (y, kept)])


@pytest.mark.parametrize(
    "program",
    [
        *[recurrent(1, 256), recurrent(64, 100), recurrent(2, 512), pointwise()],
        *[gated(1, 256), with_memory(64, 256), stacked(3, 100), leaky(1, 256), driven(1, 64), driven(3, 100)],
        *[with_sums(1, 256), with_sums(16, 100), normalised(1, 100), normalised(3, 33)],
        *[joined(1, 250), joined(5, 99), joined_vectors(64)],
        *[bottleneck(1, 64), bottleneck(5, 100), descending(200, 20), descending(7, 100)],
        assigned_as_a_whole(),
    ],
)
def test_a_body_that_carries_in_place_has_a_persistent_kernel(program: Program) -> None:
    plan = in_cuda(program)
    assert plan.persistent is not None
    assert plan.kernels[plan.persistent.kernel].text.count(plan.kernels[plan.persistent.kernel].key) == 1
    assert {*plan.persistent.operands} <= {each for launch in plan.launches for each in launch.instances[0]}
    assert len(plan.records.persistent) == program.op_count


@pytest.mark.parametrize("program", [with_gates_together(1, 256), with_gates_together(40, 33)])
def test_a_body_that_reads_its_product_in_slices_multiplies_by_slices_of_the_weights(program: Program) -> None:
    plan = in_cuda(program)
    assert plan.persistent is not None
    weights = [plan.columns[plan.persistent.operands[number].column] for number in plan.persistent.fixed]
    width = program.inputs[0].shape[1]
    of_weights = next(index for index, column in enumerate(plan.columns) if column == InputColumn(2))
    assert {*weights} == {ViewColumn(of_weights, 0, (Term(start, 4),)) for start in range(4)}
    assert plan.persistent.sizes[1] == width


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (of_two_shapes(), "different rows"),
        (finding_the_place_of_the_greatest(), "reduces other values than float32, or to positions"),
        (reducing_along_rows(), "along other dimensions"),
        (reducing_one_column(), "along other dimensions"),
        (of_other_rows(), "results of other rows"),
        (of_no_elements(0, 8, 8), "no elements"),
        (of_no_elements(2, 0, 8), "no elements"),
        (spread_over_columns(), "other columns"),
        (joined_along_rows(), "a part of a computed value"),
        (joined_with_one_column(), "in another order"),
        (of_nine_products(), "more than 8 products"),
        (multiplied_by_what_it_computes(), "both operands of a product are computed"),
        (of_products_that_turn(), "other points"),
        (of_doubles(), "not of float32"),
        (multiplied_by_others(), "several pointwise groups"),
        (turned(), "other points"),
        (over_two_iterations(), "more than one iteration"),
        (assigning_to_a_column(is_carried=True), "changes a part"),
        (assigning_to_a_column(is_carried=False), "changes a part"),
        (of_another_input(), "what another input had"),
        (recurrent(64, 1024), "do not fit clusters"),
        (with_memory(1, 512), "do not fit clusters"),
    ],
)
def test_other_bodies_are_launched_and_the_plan_says_why(program: Program, reason: str) -> None:
    plan = in_cuda(program)
    assert plan.persistent is None
    assert reason in plan.records.why_launched


def test_a_part_of_a_carried_value_is_no_obstacle_to_a_plan() -> None:
    assert in_cuda(not_whole()).persistent is None


def test_a_program_that_is_no_loop_says_nothing_of_iterations() -> None:
    writer = Writer()
    plan = in_cuda(writer.program(writer.tanh(writer.input(8))))
    assert plan.persistent is None
    assert not plan.records.why_launched


def test_what_is_multiplied_and_what_is_reduced_are_exchanged_apart() -> None:
    writer = Writer()
    h, w = writer.input(4, 8), writer.input(8, 8)
    lowered = writer.subtract(h, writer.max(h, axes=(1,), keepdims=True))
    following = writer.tanh(writer.matmul(lowered, w))
    made = design(writer.program(following, carried=[(h, following)]), for_gpu=False)
    found = persistent_of(made.program, made.graph, made.instances, made.launches, made.updates)
    assert isinstance(found, Persistent)
    assert isinstance(found.kernel, PersistentCluster)
    sources = [part.source for each in found.kernel.exchanged for part in each.parts]
    assert [(type(each), each.stage) for each in sources] == [(ReducedValue, 0), (Source, 0)]


def test_what_lies_side_by_side_is_exchanged_in_parts() -> None:
    made = design(joined(5, 60), for_gpu=False)
    found = persistent_of(made.program, made.graph, made.instances, made.launches, made.updates)
    assert isinstance(found, Persistent)
    assert isinstance(found.kernel, PersistentCluster)
    parts = [[(part.first, part.columns) for part in each.parts] for each in found.kernel.exchanged]
    assert parts == [[(0, 20), (20, 30)], [(0, 30), (30, 60)]]


def test_what_is_multiplied_and_reduced_is_exchanged_once() -> None:
    made = design(descending(200, 20), for_gpu=False)
    found = persistent_of(made.program, made.graph, made.instances, made.launches, made.updates)
    assert isinstance(found, Persistent)
    assert isinstance(found.kernel, PersistentCluster)
    assert [each.columns for each in found.kernel.exchanged] == [20, 200]  # the weights, and the error


def test_only_cuda_has_persistent_kernels() -> None:
    assert build_plan(pointwise(), "c").persistent is None


def test_what_is_carried_is_read_once_and_the_weights_must_keep_still() -> None:
    persistent = in_cuda(recurrent(1, 256)).persistent
    assert persistent is not None
    columns = [operand.column for operand in persistent.operands]
    assert [columns[index] for index in persistent.carried] == [1, 1]  # h, for the product and for the sum
    assert [columns[index] for index in persistent.fixed] == [2]  # w
