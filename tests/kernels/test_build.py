"""Whole plans: their structure for programs that people write, and their results by a NumPy interpreter of plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusewire_kernels.build import Design, build_plan, design
from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.ir.kernel import ArgumentKind, LineKernel, LoopKernel, MatrixKernel, ProductKernel
from fusewire_kernels.plan.plan import ROWS_THAT_CHOOSE, Donation
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.programs.program import Program
from tests import strategies
from tests.kernels.plan_runner import plan_without_text, run_program
from tests.kernels.programs import Writer, meaning, random_inputs, random_program
from tests.kernels.separate import design_separately
from tests.tolerances import assert_same_numbers

Array = npt.NDArray[Any]

_FUZZING = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(autouse=True, scope="module")
def _products_add_up_in_one_order() -> Iterator[None]:
    """Of float64, NumPy adds up products in an order that depends on the shapes, which a plan changes.

    It has only one order for long doubles.
    """
    matmul = np.matmul

    def of_long_doubles(a: Array, b: Array) -> Array:
        if a.dtype != np.float64:
            return np.asarray(matmul(a, b))
        return np.asarray(matmul(a.astype(np.longdouble), b.astype(np.longdouble)), np.float64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "matmul", of_long_doubles)
        yield


def _rnn(steps: int) -> Program:
    writer = Writer()
    h, w, b, r = writer.input(4, 8), writer.input(8, 8), writer.input(8), writer.input(4, 8)
    s = writer.scalar()
    for _ in range(steps):
        z = writer.multiply(writer.add(writer.matmul(h, w), b), s)
        h = writer.add(writer.sigmoid(writer.negative(z)), r)
    return writer.program(h)


def _launches(plan: Design) -> list[str]:
    """Of each launch, the kind of its kernel and how many instances it has."""
    kinds: dict[type, str] = {
        LoopKernel: "loops",
        ProductKernel: "product",
        LineKernel: "lines",
        MatrixKernel: "matrices",
    }
    return [f"{len(launch.groups)} {kinds[type(launch.lowered.kernel)]}" for launch in plan.launches]


def _assert_same(got: Sequence[Array], wanted: Sequence[Array]) -> None:
    for one, other in zip(got, wanted, strict=True):
        assert_same_numbers(one, other)


def _assert_means_the_same(
    program: Program, inputs: Sequence[Array], scalars: Sequence[Any] = (), starts: Sequence[int] = ()
) -> None:
    wanted = meaning(program, inputs, scalars, starts)
    _assert_same(run_program(program, inputs, scalars, starts, fuse=True), wanted)
    _assert_same(run_program(program, inputs, scalars, starts, fuse=False), wanted)
    _assert_same(run_program(program, inputs, scalars, starts, for_gpu=True), wanted)
    for donation in plan_without_text(design(program, for_gpu=False)).donations:
        _assert_same(run_program(program, inputs, scalars, starts, donated=[donation]), wanted)


@pytest.mark.parametrize("name", ["sum", "max"])
def test_a_row_that_is_repeated_is_reduced_along_the_batch(name: str) -> None:
    writer = Writer()
    rows = writer.broadcast_to(writer.input(1, 24), shape=(5, 24))
    program = writer.program(getattr(writer, name)(rows, axes=(0,), keepdims=False))
    row = np.arange(24, dtype=np.float32).reshape(1, 24)
    (result,) = run_program(program, [row])
    assert np.array_equal(result, row[0] * (5 if name == "sum" else 1))


def test_a_loop_body_of_a_product_and_pointwise_ops_takes_one_launch_a_step() -> None:
    assert _launches(design(_rnn(3), for_gpu=False)) == ["1 product"] * 3


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.uint8])
def test_a_product_of_two_vectors_takes_other_scalars_into_its_epilogue(dtype: DType) -> None:
    writer = Writer()
    x, y, p = writer.input(5, dtype=dtype), writer.input(5, dtype=dtype), writer.input(dtype=dtype)
    doubled = writer.add(p, p)
    program = writer.program(doubled, writer.add(doubled, writer.matmul(writer.multiply(x, x), y)))
    _assert_means_the_same(program, random_inputs(program))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64])
def test_a_product_of_two_vectors_of_floats_is_as_exact_as_a_sum(dtype: DType) -> None:
    writer = Writer()
    x, y = writer.input(100_000, dtype=dtype), writer.input(100_000, dtype=dtype)
    program = writer.program(writer.matmul(x, y))
    one, other = [np.abs(array) / 8 for array in random_inputs(program)]
    (result,) = run_program(program, [one, other])
    exact = float(one.astype(np.float64) @ other.astype(np.float64))
    assert abs(float(result) - exact) <= 2 * np.finfo(one.dtype).eps * exact


def test_a_product_of_vectors_without_elements_is_zero() -> None:
    writer = Writer()
    program = writer.program(writer.matmul(writer.input(0), writer.input(0)))
    (result,) = run_program(program, random_inputs(program))
    assert result.tolist() == 0.0


def test_a_result_of_an_epilogue_is_written_over_its_operand_and_never_over_one_of_the_product() -> None:
    writer = Writer()
    x, w, p = writer.input(4, 4), writer.input(4, 4), writer.input(4, 4)
    program = writer.program(writer.subtract(p, writer.matmul(x, w)))
    plan = build_plan(program, "c")
    assert plan.donations == (Donation(2, 0),)
    inputs = random_inputs(program)
    _assert_same(run_program(program, inputs, donated=plan.donations), meaning(program, inputs))


def test_repeated_loop_bodies_share_their_kernels_and_their_arena() -> None:
    few, many = design(_rnn(3), for_gpu=False), design(_rnn(9), for_gpu=False)
    assert len(many.kernels) == 1
    assert many.arena.size_bytes == few.arena.size_bytes


def test_a_new_size_needs_no_new_kernel() -> None:
    def softmax(rows: int, columns: int) -> Program:
        writer = Writer()
        x = writer.input(rows, columns)
        return writer.program(writer.softmax(x, axes=(1,)))

    assert design(softmax(4, 8), for_gpu=False).kernels == design(softmax(16, 100), for_gpu=False).kernels


def test_layer_norm_and_tanh_are_one_launch() -> None:
    writer = Writer()
    x, epsilon = writer.input(5, 8), writer.scalar()
    program = writer.program(writer.tanh(writer.layer_norm(x, epsilon, axes=(1,))))
    assert _launches(design(program, for_gpu=False)) == ["1 loops"]
    _assert_means_the_same(program, random_inputs(program), [1e-5])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("columns", [8, 1000, 5000])
def test_a_softmax_is_one_launch(name: str, columns: int) -> None:
    writer = Writer()
    program = writer.program(getattr(writer, name)(writer.input(5, columns), axes=(1,)))
    assert _launches(design(program, for_gpu=False)) == ["1 loops"]
    _assert_means_the_same(program, random_inputs(program))


def test_the_negative_log_likelihood_of_a_log_softmax_is_one_launch() -> None:
    writer = Writer()
    x, labels = writer.input(6, 8), writer.input(6, dtype=dtypes.int32)
    chosen = writer.one_hot(labels, classes=8, dtype=dtypes.float32.code)
    likely = writer.sum(writer.multiply(writer.log_softmax(x, axes=(1,)), chosen), axes=(1,), keepdims=False)
    program = writer.program(writer.negative(likely))
    assert _launches(design(program, for_gpu=False)) == ["1 loops"]
    _assert_means_the_same(program, random_inputs(program))


def test_a_root_mean_square_norm_is_one_launch() -> None:
    writer = Writer()
    x, gain, epsilon = writer.input(5, 8), writer.input(8), writer.scalar()
    mean = writer.mean(writer.square(x), axes=(1,), keepdims=True)
    program = writer.program(writer.multiply(writer.divide(x, writer.sqrt(writer.add(mean, epsilon))), gain))
    assert _launches(design(program, for_gpu=False)) == ["1 loops"]
    _assert_means_the_same(program, random_inputs(program), [1e-5])


def test_a_product_with_a_transposed_weight_copies_nothing() -> None:
    writer = Writer()
    x, w = writer.input(5, 8), writer.input(6, 8)
    program = writer.program(writer.matmul(x, writer.transpose(w, permutation=(1, 0))))
    assert _launches(design(program, for_gpu=False)) == ["1 product"]
    _assert_means_the_same(program, random_inputs(program))


def test_the_pieces_of_a_split_are_one_launch_that_writes_straight_into_their_concatenation() -> None:
    writer = Writer()
    x, epsilon = writer.input(5, 64), writer.scalar()
    pieces = [writer.slice(x, (1,), (4,)) for _ in range(16)]
    results = [writer.tanh(writer.layer_norm(piece, epsilon, axes=(1,))) for piece in pieces]
    program = writer.program(writer.concat(*results, axis=1))
    plan = design(program, for_gpu=False)
    assert _launches(plan) == ["16 loops"]
    assert plan.arena.size_bytes == 0
    _assert_means_the_same(program, random_inputs(program), [1e-5], [4 * piece for piece in range(16)])


def test_independent_blocks_are_instances_of_the_same_launches() -> None:
    writer = Writer()
    x = writer.input(4, 8)
    weights = [writer.input(8, 8) for _ in range(5)]
    program = writer.program(*(writer.relu(writer.matmul(x, weight)) for weight in weights))
    assert _launches(design(program, for_gpu=False)) == ["5 product"]
    _assert_means_the_same(program, random_inputs(program))


def test_an_optimiser_step_with_three_results_is_one_launch() -> None:
    writer = Writer()
    p, g, m, v = (writer.input(6, 5) for _ in range(4))
    rate, decay = writer.scalar(), writer.scalar()
    new_m = writer.add(writer.multiply(m, decay), g)
    new_v = writer.add(writer.multiply(v, decay), writer.square(g))
    new_p = writer.subtract(p, writer.divide(writer.multiply(rate, new_m), writer.sqrt(new_v)))
    program = writer.program(new_p, new_m, new_v)
    assert _launches(design(program, for_gpu=False)) == ["1 loops"]
    _assert_means_the_same(program, [np.abs(array) + 1 for array in random_inputs(program)], [0.1, 0.9])


def test_an_optimiser_step_of_which_one_result_is_dead_stores_the_others_in_one_launch() -> None:
    writer = Writer()
    p, g, m, v = (writer.input(6, 5) for _ in range(4))
    rate, decay = writer.scalar(), writer.scalar()
    new_m = writer.add(writer.multiply(m, decay), g)
    new_v = writer.add(writer.multiply(v, decay), writer.square(g))
    new_p = writer.subtract(p, writer.divide(writer.multiply(rate, new_m), writer.sqrt(new_v)))
    program = writer.program(new_p, new_m)
    (launch,) = design(program, for_gpu=False).launches
    assert isinstance(launch.lowered.kernel, LoopKernel)
    assert len(launch.lowered.kernel.stores) == 2
    _assert_means_the_same(program, [np.abs(array) + 1 for array in random_inputs(program)], [0.1, 0.9])


def test_a_mask_made_of_positions_is_computed_where_it_is_used() -> None:
    writer = Writer()
    x = writer.input(3, 6, 6)
    zero, one, fill = writer.scalar(dtypes.int64), writer.scalar(dtypes.int64), writer.scalar()
    position = writer.arange(zero, one, length=6, dtype=dtypes.int64.code)
    mask = writer.less_equal(position, writer.reshape(position, shape=(6, 1)))
    program = writer.program(writer.softmax(writer.where(mask, x, fill), axes=(2,)))
    assert _launches(design(program, for_gpu=False)) == ["1 loops"]
    _assert_means_the_same(program, random_inputs(program), [0, 1, -1e9])


def test_what_is_computed_again_is_so_with_all_it_is_made_of_though_some_of_that_has_a_buffer() -> None:
    writer = Writer()
    x, y, indices = writer.input(4), writer.input(4), writer.input(3, dtype=dtypes.int64)
    start, step = writer.scalar(), writer.scalar()
    alike = writer.add(writer.exp(y), x)
    ramp = writer.arange(start, step, length=4, dtype=dtypes.float32.code)
    powers = writer.exp(ramp)
    picked = writer.take(ramp, indices, axis=0)  # reads the ramp from memory
    program = writer.program(alike, picked, writer.add(powers, x))
    _assert_means_the_same(program, random_inputs(program), [1.0, 0.5])


@pytest.mark.parametrize("name", ["negative", "exp", "add"])
def test_what_is_computed_again_at_other_points_is_not_what_its_group_computes_itself(name: str) -> None:
    writer = Writer()
    x, s = writer.input(4, 4), writer.scalar()
    rows = writer.multiply(writer.eye(rows=4, columns=4, diagonal=1, dtype=dtypes.float32.code), s)
    turned = writer.transpose(rows, permutation=(1, 0))
    columns = writer.add(turned, x) if name == "add" else writer.op(name, turned)
    product = writer.matmul(rows, x)  # reads the rows from memory
    program = writer.program(product, writer.add(rows, columns))
    _assert_means_the_same(program, random_inputs(program), [2.0])


def test_a_reshape_does_not_end_fusion() -> None:
    writer = Writer()
    x, bias, epsilon = writer.input(4, 12), writer.input(12), writer.scalar()
    groups = writer.reshape(writer.add(x, bias), shape=(4, 3, 4))
    normal = writer.reshape(writer.layer_norm(groups, epsilon, axes=(2,)), shape=(4, 12))
    program = writer.program(writer.multiply(normal, bias))
    assert _launches(design(program, for_gpu=False)) == ["1 loops"]
    _assert_means_the_same(program, random_inputs(program), [1e-5])


def test_a_live_transpose_is_stored_by_the_kernel_that_computes_it() -> None:
    writer = Writer()
    y = writer.tanh(writer.input(3, 5))
    program = writer.program(y, writer.transpose(y, permutation=(1, 0)))
    assert _launches(design(program, for_gpu=False)) == ["1 loops"]
    _assert_means_the_same(program, random_inputs(program))


def test_a_value_that_needs_another_launch_in_between_is_not_fused_across_it() -> None:
    writer = Writer()
    x, w = writer.input(4, 4), writer.input(4, 4)
    y = writer.tanh(x)
    program = writer.program(writer.add(y, writer.matmul(y, w)))
    assert _launches(design(program, for_gpu=False)) == ["1 loops", "1 product"]
    _assert_means_the_same(program, random_inputs(program))


def test_ops_that_nothing_live_needs_are_not_planned() -> None:
    writer = Writer()
    x = writer.input(4, 4)
    kept = writer.tanh(x)
    writer.matmul(kept, x)
    assert _launches(design(writer.program(kept), for_gpu=False)) == ["1 loops"]


def test_repeated_assignments_to_one_array_copy_it_once() -> None:
    writer = Writer()
    x, value = writer.input(6, 4), writer.input(2, 4)
    first = writer.assign_slice(x, value, axes=(0,), lengths=(2,), steps=(1,), dropped=())
    second = writer.assign_slice(first, value, axes=(0,), lengths=(2,), steps=(2,), dropped=())
    program = writer.program(second)
    assert _launches(design(program, for_gpu=False)) == ["1 loops"] * 3
    _assert_means_the_same(program, random_inputs(program), [], [1, 3])


def test_an_array_that_is_read_after_an_assignment_to_it_keeps_its_elements() -> None:
    writer = Writer()
    x, value = writer.input(6), writer.input(2)
    first = writer.assign_slice(x, value, axes=(0,), lengths=(2,), steps=(1,), dropped=())
    second = writer.assign_slice(first, value, axes=(0,), lengths=(2,), steps=(1,), dropped=())
    program = writer.program(second, writer.add(first, x))
    _assert_means_the_same(program, random_inputs(program), [], [0, 4])


@pytest.mark.parametrize("name", ["sum", "mean", "any"])
def test_reductions_of_nothing_are_constants(name: str) -> None:
    writer = Writer()
    program = writer.program(writer.op(name, writer.input(3, 0), attributes=((1,), False)))
    assert len(design(program, for_gpu=False).launches) == 1
    with np.errstate(all="ignore"):
        _assert_means_the_same(program, random_inputs(program))


def test_arrays_without_elements_need_no_launch() -> None:
    writer = Writer()
    program = writer.program(writer.tanh(writer.input(3, 0)))
    assert design(program, for_gpu=False).launches == []
    _assert_means_the_same(program, random_inputs(program))


def test_a_kernel_stays_within_its_limits() -> None:
    writer = Writer()
    arrays = [writer.input(7) for _ in range(50)]
    total = arrays[0]
    for array in arrays[1:]:
        total = writer.add(total, array)
    for _ in range(300):
        total = writer.negative(total)
    program = writer.program(total)
    plan = design(program, for_gpu=False)
    kernels = [kernel for kernel in plan.kernels.values() if isinstance(kernel, LoopKernel)]
    assert max(len(kernel.inputs) + len(kernel.stores) for kernel in kernels) <= 30
    assert max(len(kernel.nodes) for kernel in kernels) <= 200
    _assert_means_the_same(program, random_inputs(program))


def _widest(program: Program) -> int:
    """The arrays of the kernel that has most of them."""
    return max(len(instance.operands) - _scalars(instance) for instance in design(program, for_gpu=False).instances)


def _scalars(instance: Instance) -> int:
    kernel = instance.lowered.kernel
    assert isinstance(kernel, LoopKernel)
    return sum(argument.kind is ArgumentKind.SCALAR for argument in kernel.inputs)


def test_live_results_count_among_the_arrays_of_a_kernel() -> None:
    writer = Writer()
    x, scalars = writer.input(7), [writer.scalar() for _ in range(60)]
    y = writer.negative(x)
    program = writer.program(*[writer.add(y, scalar) for scalar in scalars])
    assert _widest(program) <= 30
    _assert_means_the_same(program, random_inputs(program), [0.5 * number for number in range(60)])


def test_results_that_other_kernels_read_count_among_the_arrays_of_a_kernel() -> None:
    writer = Writer()
    x, scalars = writer.input(7), [writer.scalar() for _ in range(60)]
    y = writer.negative(x)
    parts = [writer.slice(writer.add(y, scalar), (0,), (3,)) for scalar in scalars]
    program = writer.program(*[writer.exp(part) for part in parts])
    assert _widest(program) <= 30
    _assert_means_the_same(program, random_inputs(program), [0.5 * number for number in range(60)], [0] * 60)


def test_a_chain_of_many_temporaries_stays_one_kernel() -> None:
    writer = Writer()
    y = writer.negative(writer.input(7))
    for _ in range(50):
        y = writer.multiply(writer.tanh(y), writer.add(y, y))
    assert len(design(writer.program(y), for_gpu=False).launches) == 1


def test_the_reductions_of_a_kernel_are_bounded() -> None:
    writer = Writer()
    x, scalars = writer.input(5, 7), [writer.scalar() for _ in range(30)]
    y = writer.negative(x)
    found = [writer.argmax(writer.add(y, scalar), axes=(0,), keepdims=False) for scalar in scalars]
    program = writer.program(*found)
    kernels = [kernel for kernel in design(program, for_gpu=False).kernels.values() if isinstance(kernel, LoopKernel)]
    assert max(sum(node.op == "reduce" for node in kernel.nodes) for kernel in kernels) == 8
    _assert_means_the_same(program, random_inputs(program), [0.5 * number for number in range(30)])


def test_one_scalar_used_twice_is_one_argument() -> None:
    writer = Writer()
    x, s = writer.input(4), writer.scalar()
    (kernel,) = design(writer.program(writer.multiply(writer.add(x, s), s)), for_gpu=False).kernels.values()
    assert isinstance(kernel, LoopKernel)
    assert len(kernel.inputs) == 2


def test_two_donations_of_one_program_are_legal_together() -> None:
    writer = Writer()
    p, g, m = writer.input(6), writer.input(6), writer.input(6)
    new_m = writer.add(m, g)
    program = writer.program(writer.subtract(p, new_m), new_m)
    inputs = random_inputs(program)
    donated = [Donation(2, 0), Donation(0, 1)]
    _assert_same(run_program(program, inputs, donated=donated), meaning(program, inputs))


def test_a_plan_carries_the_text_of_each_kernel_once() -> None:
    plan = build_plan(_rnn(5), "c")
    assert len(plan.kernels) == 1
    assert all(source.key in source.text for source in plan.kernels)
    assert {launch.kernel for launch in plan.launches} == {0}


@pytest.mark.parametrize(("most_rows", "tiles"), [(1, ["8x16"]), (ROWS_THAT_CHOOSE, ["8x16", "16x32", "32x64"])])
def test_on_a_gpu_a_plan_has_only_the_sources_that_its_sizes_and_rows_need(most_rows: int, tiles: list[str]) -> None:
    writer = Writer()
    x, w = writer.input(64, 1024), writer.input(1024, 256)
    total = writer.sum(x, axes=(1,), keepdims=False)
    plan = build_plan(writer.program(total, writer.matmul(x, w)), "cuda", most_rows)
    assert all(source.key in source.text for source in plan.kernels)
    assert [source.key.rpartition("_")[2] for source in plan.kernels] == ["whole", *tiles]


def test_launches_of_one_kernel_over_several_sizes_have_the_sources_of_all() -> None:
    writer = Writer()
    w, few, many = writer.input(1024, 1024), writer.input(1, 1024), writer.input(2048, 1024)
    plan = build_plan(writer.program(writer.matmul(few, w), writer.matmul(many, w)), "cuda")
    assert [source.key.rpartition("_")[2] for source in plan.kernels] == ["1x16", "64x128"]


def test_without_fusion_every_op_is_a_launch() -> None:
    assert len(design_separately(_rnn(2)).launches) == 12


@_FUZZING
@given(st.integers(0, 2**32))
def test_random_programs_mean_the_same_fused_unfused_and_donated(seed: int) -> None:
    program, scalars, starts = random_program(seed)
    with np.errstate(all="ignore"):
        _assert_means_the_same(program, random_inputs(program, seed), scalars, starts)


@_FUZZING
@given(strategies.programs())
def test_programs_of_all_ops_and_dtypes_mean_the_same_fused_and_unfused(work: strategies.Work) -> None:
    _assert_means_the_same(work.program, work.inputs, work.scalars, work.starts)


@_FUZZING
@given(st.data())
def test_every_op_means_the_same_planned(data: st.DataObject) -> None:
    op = data.draw(st.sampled_from(strategies.PLANNED))
    work = data.draw(strategies.programs_of(op))
    _assert_means_the_same(work.program, work.inputs, work.scalars, work.starts)
