"""Loop kernels in C: addressing, fusion, and reductions in the one order, whichever schedule runs them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.codegen.c.loops import columns_at_once, loop_text
from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.codegen.statements import analyse
from fusewire_kernels.compile import c_compiler as compiling
from fusewire_kernels.compile.c_compiler import Toolchain
from fusewire_kernels.ir.kernel import LoopKernel
from fusewire_kernels.ops.order import CHUNK
from fusewire_kernels.ops.reference import twin
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.dtypes import DType
from tests.kernels.codegen.order_of_summation import reduced
from tests.kernels.problems import Gathered, Problem, Scalar, loop_problem, node, run, toolchain_in
from tests.tolerances import assert_same_bytes

Array = npt.NDArray[Any]
f32, f16, i64 = dtypes.float32, dtypes.float16, dtypes.int64
RANDOM = np.random.default_rng(1)


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return toolchain_in(tmp_path_factory.mktemp("cache"))


def _normal(*shape: int, dtype: DType = f32) -> Array:
    return RANDOM.normal(size=shape).astype(dtypes.to_numpy(dtype))


# ---- addressing ----


def _sum_of_two(a: Array, b: Array, dims: tuple[int, ...]) -> Problem:
    dtype = dtypes.from_numpy(a.dtype)
    return loop_problem(dims, [a, b], [node("add", (0, 1), dtype)], [(2, np.empty(dims, a.dtype))])


def test_operands_of_any_strides_and_broadcasts_meet(toolchain: Toolchain) -> None:
    cases = [
        ((), _normal(), _normal()),
        ((5,), _normal(5), _normal()),
        ((4, 6), _normal(4, 6), _normal(6)),
        ((4, 6), _normal(4, 1), _normal(6)),
        ((4, 6), _normal(6, 4).T, _normal(8, 12)[::2, ::-2]),
        ((3, 4, 5), _normal(3, 1, 5), _normal(5, 4, 3).transpose(2, 1, 0)),
        ((2, 3, 4, 5), _normal(4, 5), _normal(2, 3, 1, 1)),
        ((2, 3, 2, 1, 2, 3, 2, 2), _normal(2, 3, 2, 1, 2, 3, 2, 2), _normal(2, 1, 1, 2, 1, 3, 1, 2)[:, :, :, :1]),
        ((0, 3), _normal(0, 3), _normal(3)),
    ]
    problems = [_sum_of_two(a, b, dims) for dims, a, b in cases]
    run(problems, toolchain)
    for problem, (_, a, b) in zip(problems, cases, strict=True):
        assert_same_bytes(problem.outputs[0], np.asarray(a + b))


def test_an_output_may_be_strided(toolchain: Toolchain) -> None:
    x, target = _normal(4, 5), np.zeros((8, 10), np.float32)
    run([loop_problem((4, 5), [x], [node("negative", (0,), f32)], [(1, target[::2, 1::2])])], toolchain)
    expected = np.zeros((8, 10), np.float32)
    expected[::2, 1::2] = -x
    assert_same_bytes(target, expected)


def test_an_output_may_overwrite_an_input_read_at_the_same_place(toolchain: Toolchain) -> None:
    x = _normal(1000)
    expected = np.asarray((x + x) * x)
    nodes = [node("add", (0, 0), f32), node("multiply", (1, 0), f32)]
    run([loop_problem((1000,), [x], nodes, [(2, x)])], toolchain)
    assert_same_bytes(x, expected)


def test_a_scalar_is_read_from_its_slot_in_its_dtype(toolchain: Toolchain) -> None:
    values = {dtypes.bool_: True, dtypes.uint8: 200, dtypes.int32: -5, i64: -(2**40), f16: 1.5, f32: 0.1}
    results = {dtype: np.empty(2, dtypes.to_numpy(dtype)) for dtype in values}
    run([loop_problem((2,), [Scalar(values[d], d)], [], [(0, results[d])]) for d in values], toolchain)
    for dtype, result in results.items():
        assert_same_bytes(result, np.full(2, values[dtype], result.dtype))


def test_a_kernel_has_several_outputs_of_several_dtypes(toolchain: Toolchain) -> None:
    x = _normal(3, 7)
    doubled, is_positive = np.empty_like(x), np.empty(x.shape, np.bool_)
    nodes = [node("add", (0, 0), f32), node("greater", (2, 1), dtypes.bool_, operand_dtype=f32)]
    inputs: list[Array | Scalar] = [x, Scalar(0.0, f32)]
    run([loop_problem(x.shape, inputs, nodes, [(2, doubled), (3, is_positive)])], toolchain)
    assert_same_bytes(doubled, x + x)
    assert_same_bytes(is_positive, x > 0)


def test_a_position_counts_along_its_dimension(toolchain: Toolchain) -> None:
    along = [np.empty((3, 4), np.int64) for _ in range(2)]
    run([loop_problem((3, 4), [], [node("index", (), i64, detail=d)], [(0, along[d])]) for d in range(2)], toolchain)
    rows, columns = np.indices((3, 4))
    assert_same_bytes(along[0], rows)
    assert_same_bytes(along[1], columns)


def test_a_gather_clamps_positions_outside_the_axis(toolchain: Toolchain) -> None:
    table, positions = _normal(5, 6), np.array([0, 4, -1, 99, 2, -(2**62)])
    result = np.empty((6, 6), np.float32)
    gathered = Gathered(table, 0, table[:1])
    nodes = [node("gather", (1,), f32, operand_dtype=i64, detail=0)]
    run([loop_problem((6, 6), [gathered, positions[:, None]], nodes, [(2, result)])], toolchain)
    assert_same_bytes(result, table[np.clip(positions, 0, 4)])


# ---- reductions ----

REDUCTIONS: list[tuple[str, DType, Callable[[Array, Array], Array], Any]] = [
    ("sum", f32, np.add, 0),
    ("sum", dtypes.float64, np.add, 0),
    ("sum", i64, np.add, 0),
    ("prod", f32, np.multiply, 1),
    ("min", f32, np.minimum, np.inf),
    ("max", f32, np.maximum, -np.inf),
    ("max", dtypes.int32, np.maximum, np.iinfo(np.int32).min),
    ("min", dtypes.uint8, np.minimum, 255),
    ("any", dtypes.bool_, np.logical_or, False),
    ("all", dtypes.bool_, np.logical_and, True),
]


def _reduction(name: str, x: Array, *, by_columns: bool) -> Problem:
    """A reduction along the last axis of x, laid out so that the other axis is contiguous if `by_columns`."""
    dtype = dtypes.from_numpy(x.dtype)
    result_dtype = i64 if name.startswith("arg") else dtype
    laid = np.asfortranarray(x) if by_columns else np.ascontiguousarray(x)
    result = np.empty((*x.shape[:-1], 1), dtypes.to_numpy(result_dtype))
    body = node("reduce", (0,), result_dtype, operand_dtype=dtype, detail=name)
    return loop_problem(x.shape, [laid], [body], [(1, result)], has_inner=True)


def _values(dtype: DType, rows: int, extent: int) -> Array:
    if dtype.is_boolean:
        return np.asarray(RANDOM.integers(0, 40, (rows, extent)) == 0)
    if dtype.is_integer:
        return RANDOM.integers(0, 200, (rows, extent)).astype(dtypes.to_numpy(dtype))
    return RANDOM.normal(1, 0.5, (rows, extent)).astype(dtypes.to_numpy(dtype))


EXTENTS = (1, 2, 31, 32, 33, 100, 1000)


@pytest.fixture(scope="module")
def reductions(toolchain: Toolchain) -> dict[tuple[str, str], list[tuple[Array, Problem, Problem]]]:
    """(values, by rows, by columns) of every reduction over every extent, run."""
    found = {}
    for name, dtype, _, _ in REDUCTIONS:
        values = [_values(dtype, 5, extent) for extent in EXTENTS]
        found[name, dtype.name] = [
            (x, _reduction(name, x, by_columns=False), _reduction(name, x, by_columns=True)) for x in values
        ]
    run([problem for cases in found.values() for _, *pair in cases for problem in pair], toolchain)
    return found


@pytest.mark.parametrize(("name", "dtype", "combine", "identity"), REDUCTIONS)
def test_a_reduction_follows_the_one_order_in_both_schedules(
    name: str,
    dtype: DType,
    combine: Callable[[Array, Array], Array],
    identity: Any,
    reductions: dict[tuple[str, str], list[tuple[Array, Problem, Problem]]],
) -> None:
    for x, by_rows, by_columns in reductions[name, dtype.name]:
        expected = reduced(x, combine, identity)[:, None]
        assert_same_bytes(by_rows.outputs[0], expected)
        assert_same_bytes(by_columns.outputs[0], expected)


def test_the_two_schedules_are_chosen_by_what_is_contiguous() -> None:
    x = _normal(70, 9)
    rows, columns = (_reduction("sum", x, by_columns=flag).kernel for flag in (False, True))
    assert isinstance(rows, LoopKernel)
    assert isinstance(columns, LoopKernel)
    assert not rows.runs_along_columns
    assert columns.runs_along_columns


def test_more_columns_than_a_block_holds_are_reduced_alike(toolchain: Toolchain) -> None:
    x = _normal(200, 40)
    problems = [_reduction("sum", x, by_columns=flag) for flag in (False, True)]
    run(problems, toolchain)
    assert_same_bytes(problems[0].outputs[0], problems[1].outputs[0])


def _many_positions(x: Array, *, by_columns: bool) -> Problem:
    """Where x + 0, x + 1, … are greatest along the last axis: more partial results than 64 columns may have."""
    laid = np.asfortranarray(x) if by_columns else np.ascontiguousarray(x)
    nodes, outputs = [], []
    for number in range(_MANY):
        nodes.append(node("add", (0, 1 + number), dtypes.float64))
        nodes.append(node("reduce", (1 + _MANY + 2 * number,), i64, operand_dtype=dtypes.float64, detail="argmax"))
        outputs.append((2 + _MANY + 2 * number, np.empty((len(x), 1), np.int64)))
    inputs: list[Array | Scalar] = [laid, *(Scalar(number, dtypes.float64) for number in range(_MANY))]
    return loop_problem(x.shape, inputs, nodes, outputs, has_inner=True)


_MANY = 10


def test_what_a_kernel_that_reduces_much_puts_on_the_stack_is_bounded(toolchain: Toolchain) -> None:
    x = RANDOM.integers(0, 100, (70, 40)).astype(np.float64)
    problems = [_many_positions(x, by_columns=flag) for flag in (False, True)]
    kernel = problems[1].kernel
    assert isinstance(kernel, LoopKernel)
    assert columns_at_once(analyse(kernel)) * _MANY * 3 * 32 * (8 + 8) <= 256 << 10
    run(problems, toolchain)
    for by_rows, by_columns in zip(problems[0].outputs, problems[1].outputs, strict=True):
        assert_same_bytes(by_rows, x.argmax(axis=1)[:, None])
        assert_same_bytes(by_columns, by_rows)


def test_an_empty_reduction_gives_the_identity(toolchain: Toolchain) -> None:
    problems = [_reduction(name, np.empty((3, 0), np.float32), by_columns=False) for name in ("sum", "prod")]
    run(problems, toolchain)
    assert problems[0].outputs[0].tolist() == [[0.0]] * 3
    assert problems[1].outputs[0].tolist() == [[1.0]] * 3


@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_a_position_reduction_takes_the_first_nan_then_the_first_best(name: str, toolchain: Toolchain) -> None:
    ties = RANDOM.integers(0, 4, (6, 70)).astype(np.float32)
    with_nan = ties.copy()
    with_nan[2, 40] = with_nan[2, 50] = with_nan[4, 3] = np.nan
    unbounded = np.full((2, 40), np.inf if name == "argmin" else -np.inf, np.float32)
    cases = [ties, with_nan, unbounded]
    problems = [_reduction(name, x, by_columns=flag) for x in cases for flag in (False, True)]
    run(problems, toolchain)
    for number, problem in enumerate(problems):
        expected = getattr(np, name)(cases[number // 2], axis=1)[:, None]
        assert_same_bytes(problem.outputs[0], expected)


def test_halves_are_summed_in_float32_and_rounded_once(toolchain: Toolchain) -> None:
    x = _values(f16, 3, 3000)
    problem = _reduction("sum", x, by_columns=False)
    run([problem], toolchain)
    assert_same_bytes(problem.outputs[0], reduced(x.astype(np.float32), np.add, 0)[:, None].astype(np.float16))


def test_zeros_of_either_sign_are_combined_as_the_twin_combines_them(toolchain: Toolchain) -> None:
    problems = []
    for name, dtype, extent in product(("min", "max"), (f16, dtypes.bfloat16, f32, dtypes.float64), (*EXTENTS, 2500)):
        x = np.where(RANDOM.random((5, extent)) < 0.5, 0.0, -0.0).astype(dtypes.to_numpy(dtype))
        x[0, 0], x[1, -1] = 1, -1
        expected = twin(catalogue.BY_NAME[name])(np, (x,), ((1,), True), ())
        problems += [(_reduction(name, x, by_columns=by_columns), expected) for by_columns in (False, True)]
    run([problem for problem, _ in problems], toolchain)
    for problem, expected in problems:
        assert_same_bytes(problem.outputs[0], expected)


def test_a_nan_wins_a_minimum(toolchain: Toolchain) -> None:
    x = _normal(4, 50)
    x[1, 7] = x[3, 49] = np.nan
    problem = _reduction("min", x, by_columns=False)
    run([problem], toolchain)
    assert_same_bytes(problem.outputs[0], x.min(axis=1, keepdims=True))


@pytest.mark.parametrize("by_columns", [False, True])
def test_chunks_are_reduced_by_the_same_rule(by_columns: bool, toolchain: Toolchain) -> None:
    x = _values(f32, 2, 3 * CHUNK + 5)
    problems = [_reduction(name, x, by_columns=by_columns) for name in ("sum", "argmax")]
    run(problems, toolchain)
    assert_same_bytes(problems[0].outputs[0], reduced(x, np.add, 0)[:, None])
    assert_same_bytes(problems[1].outputs[0], x.argmax(axis=1)[:, None])


@pytest.mark.parametrize("by_columns", [False, True])
def test_the_rule_holds_for_three_levels_of_chunks(
    by_columns: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = 32
    small_chunks = f"#define FW_CHUNK {chunk}\n{prelude('c')}"
    monkeypatch.setattr(compiling, "prelude", lambda dialect: small_chunks)
    xs = [_values(f32, 2, extent) for extent in (chunk, chunk + 1, chunk**2, chunk**2 + 1, 5 * chunk**2 + 77)]
    problems = [_reduction(name, x, by_columns=by_columns) for x in xs for name in ("sum", "argmin")]
    run(problems, toolchain_in(tmp_path))
    for x, summed, least in zip(xs, problems[::2], problems[1::2], strict=True):
        assert_same_bytes(summed.outputs[0], reduced(x, np.add, 0, chunk)[:, None])
        assert_same_bytes(least.outputs[0], x.argmin(axis=1)[:, None])


# ---- fusion around reductions ----


def _softmax(x: Array, result: Array) -> Problem:
    nodes = [
        node("reduce", (0,), f32, detail="max"),
        node("subtract", (0, 1), f32),
        node("exp", (2,), f32),
        node("reduce", (3,), f32, detail="sum"),
        node("divide", (3, 4), f32),
    ]
    return loop_problem(x.shape, [x], nodes, [(5, result)], has_inner=True)


def _in_steps(x: Array, toolchain: Toolchain) -> Array:
    """Softmax, a kernel for each op."""
    greatest, total = np.empty((len(x), 1), np.float32), np.empty((len(x), 1), np.float32)
    shifted, raised, result = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    reduce = partial(loop_problem, x.shape, has_inner=True)
    run([reduce([x], [node("reduce", (0,), f32, detail="max")], [(1, greatest)])], toolchain)
    run([loop_problem(x.shape, [x, greatest], [node("subtract", (0, 1), f32)], [(2, shifted)])], toolchain)
    run([loop_problem(x.shape, [shifted], [node("exp", (0,), f32)], [(1, raised)])], toolchain)
    run([reduce([raised], [node("reduce", (0,), f32, detail="sum")], [(1, total)])], toolchain)
    run([loop_problem(x.shape, [raised, total], [node("divide", (0, 1), f32)], [(2, result)])], toolchain)
    return result


def test_a_fused_softmax_has_the_bits_of_its_steps(toolchain: Toolchain) -> None:
    x = _normal(70, 45)
    expected = _in_steps(x, toolchain)
    by_rows = _softmax(x, np.empty_like(x))
    by_columns = _softmax(np.asfortranarray(x), np.empty_like(x, order="F"))
    in_place = x.copy()
    run([by_rows, by_columns, _softmax(in_place, in_place)], toolchain)
    for result in (by_rows.outputs[0], by_columns.outputs[0], in_place):
        assert_same_bytes(np.ascontiguousarray(result), expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_outer_inputs_and_outputs_join_inner_ones(order: Any, toolchain: Toolchain) -> None:
    x, bias, scale = _normal(70, 9).copy(order), _normal(70), _normal(9)
    scaled, total = np.empty_like(x), np.empty((70, 1), np.float32)
    nodes = [
        node("multiply", (0, 2), f32),  # 3: inner
        node("reduce", (3,), f32, detail="sum"),  # 4
        node("add", (4, 1), f32, is_inner=False),  # 5: outer
        node("subtract", (3, 5), f32),  # 6: inner
    ]
    run([loop_problem((70, 9), [x, bias[:, None], scale], nodes, [(6, scaled), (5, total)], has_inner=True)], toolchain)
    product = np.ascontiguousarray(x * scale)
    expected = reduced(product, np.add, 0) + bias
    assert_same_bytes(total[:, 0], expected)
    assert_same_bytes(np.ascontiguousarray(scaled), product - expected[:, None])


def test_a_reduction_over_everything_has_no_outer_dimension(toolchain: Toolchain) -> None:
    x, total = _normal(777), np.empty(1, np.float32)
    run([loop_problem((777,), [x], [node("reduce", (0,), f32, detail="sum")], [(1, total)], has_inner=True)], toolchain)
    assert_same_bytes(total[0], reduced(x, np.add, 0))


def test_an_inner_position_can_be_reduced(toolchain: Toolchain) -> None:
    total = np.empty((3, 1), np.int64)
    nodes = [node("index", (), i64, detail=1), node("reduce", (0,), i64, detail="sum")]
    run([loop_problem((3, 10), [], nodes, [(1, total)], has_inner=True)], toolchain)
    assert total.tolist() == [[45]] * 3


def test_a_value_the_kernel_does_not_store_is_not_computed() -> None:
    nodes = [node("exp", (0,), f32), node("add", (0, 0), f32)]
    problem = loop_problem((4,), [_normal(4)], nodes, [(2, np.empty(4, np.float32))])
    assert isinstance(problem.kernel, LoopKernel)
    assert "exp" not in loop_text(problem.kernel)
