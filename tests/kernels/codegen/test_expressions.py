"""The scalar bodies: every op of the catalogue has one for every dtype it computes in, and means what its twin does."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.codegen.expressions import expression, literal
from fusewire_kernels.ops.conversions import scalar
from fusewire_kernels.ops.reference import twin
from fusewire_protos.errors import DtypeError
from fusewire_protos.ops import catalogue, dtypes, nans
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Category, Op
from tests.attributes import sample_attributes
from tests.kernels.problems import Problem, loop_problem, node, run, toolchain_in
from tests.tolerances import assert_close, assert_same_bytes

Array = npt.NDArray[Any]
OPS = [op for op in catalogue.OPS if op.category is Category.POINTWISE and op.name != "astype"]
SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.7, 100.0, -7.0, np.inf, -np.inf, np.nan]


class Computation(NamedTuple):
    op: Op
    operands: tuple[Array, ...]
    problem: Problem


def _values(dtype: DType, seed: int) -> Array:
    """Values of a dtype, ordinary and special, in an order that depends on `seed`."""
    random = np.random.default_rng(seed)
    if dtype.is_floating:
        values = np.concatenate([random.normal(0, 3, 40), SPECIALS])
    elif dtype.is_boolean:
        values = random.integers(0, 2, 52)
    else:
        limits = np.iinfo(dtypes.to_numpy(dtype))
        low, high = max(limits.min, -9), min(limits.max, 9)
        special = np.array([limits.min, limits.max, 0, 1], dtypes.to_numpy(dtype))
        values = np.concatenate([random.integers(low, high, 48).astype(special.dtype), special])
    return np.asarray(random.permutation(values).astype(dtypes.to_numpy(dtype)))


def _computation(op: Op, dtype: DType) -> Computation | None:
    """The op over arrays of the dtypes that it casts operands of `dtype` to; None where it does not take them."""
    try:
        signature = op.dtype_rule((dtype,) * op.least_operands, sample_attributes(op))
    except DtypeError:
        return None
    operands = tuple(_values(wanted, seed) for seed, wanted in enumerate(signature.operands))
    result = np.empty(operands[0].shape, dtypes.to_numpy(signature.result))
    numbers = [scalar(np, number, signature.operands[-1]) for number in op.numbers(sample_attributes(op))]
    arguments = (*operands, *[np.broadcast_to(number, result.shape).copy() for number in numbers])
    body = node(op.name, tuple(range(len(arguments))), signature.result, operand_dtype=signature.operands[-1])
    return Computation(op, operands, loop_problem(result.shape, arguments, [body], [(len(arguments), result)]))


@pytest.fixture(scope="module")
def computations(tmp_path_factory: pytest.TempPathFactory) -> list[Computation]:
    """Every op over every dtype, compiled and run."""
    found = [_computation(op, dtype) for op, dtype in product(OPS, dtypes.ALL)]
    computations = [computation for computation in found if computation]
    run([computation.problem for computation in computations], toolchain_in(_folder(tmp_path_factory)))
    return computations


def _folder(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("cache")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_body_computes_what_its_twin_does(op: Op, computations: list[Computation]) -> None:
    for computation in computations:
        if computation.op is op:
            expected = np.asarray(twin(op)(np, computation.operands, sample_attributes(op), ()))
            (actual,) = computation.problem.outputs
            assert_close(actual, expected, op, dtypes.from_numpy(actual.dtype))


@pytest.fixture(scope="module")
def conversions(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Array, Array]]:
    """Every dtype cast to every dtype: (values, result)."""
    pairs = []
    for source, target in product(dtypes.ALL, dtypes.ALL):
        values = _values(source, seed=7)
        pairs.append((values, np.empty(values.shape, dtypes.to_numpy(target))))
    problems = [_conversion(values, result) for values, result in pairs]
    run(problems, toolchain_in(_folder(tmp_path_factory)))
    return pairs


def _conversion(values: Array, result: Array) -> Problem:
    source, target = dtypes.from_numpy(values.dtype), dtypes.from_numpy(result.dtype)
    return loop_problem(values.shape, [values], [node("cast", (0,), target, operand_dtype=source)], [(1, result)])


def test_a_cast_gives_the_bits_of_its_twin(conversions: list[tuple[Array, Array]]) -> None:
    astype = twin(catalogue.BY_NAME["astype"])
    for values, result in conversions:
        code = dtypes.from_numpy(result.dtype).code
        assert_same_bytes(result, np.asarray(astype(np, [values], (code,), ())))


_INTEGERS = [dtype for dtype in dtypes.ALL if dtype.is_integer]
_FLOATS = [dtype for dtype in dtypes.ALL if dtype.is_floating]


def test_a_float_that_an_integer_cuts_to_zero_comes_back_without_its_sign(tmp_path: Path) -> None:
    """In one kernel, where a compiler sees both casts. The square root of a rounded −0 would be −0."""
    roots = []
    for source, whole, target in product(_FLOATS, _INTEGERS, _FLOATS):
        values = np.full(37, -0.5).astype(dtypes.to_numpy(source))
        result = np.empty(values.shape, dtypes.to_numpy(target))
        cut = node("cast", (0,), whole, operand_dtype=source)
        back = node("cast", (1,), target, operand_dtype=whole)
        root = node("sqrt", (2,), target, operand_dtype=target)
        roots.append((result, loop_problem(values.shape, [values], [cut, back, root], [(3, result)])))
    run([problem for _, problem in roots], toolchain_in(tmp_path))
    for result, _ in roots:
        assert_same_bytes(result, np.zeros_like(result))


@pytest.mark.parametrize("dtype", _FLOATS)
def test_of_zeros_of_either_sign_the_one_that_the_twin_selects_is_selected(dtype: DType, tmp_path: Path) -> None:
    columns = zip(*product((0.0, -0.0, 1.0, -1.0, np.nan), repeat=3), strict=True)
    values = [np.array(column).astype(dtypes.to_numpy(dtype)) for column in columns]
    problems = []
    for op in [catalogue.BY_NAME[name] for name in ("minimum", "maximum", "clip")]:
        operands = values[: op.least_operands]
        body = node(op.name, tuple(range(len(operands))), dtype, operand_dtype=dtype)
        result = (len(operands), np.empty_like(values[0]))
        problems.append((loop_problem(values[0].shape, operands, [body], [result]), twin(op)(np, operands, (), ())))
    run([problem for problem, _ in problems], toolchain_in(tmp_path))
    for problem, expected in problems:
        assert_same_bytes(nans.settle(problem.outputs[0]), expected)


def test_an_op_without_a_body_for_a_dtype_is_refused() -> None:
    with pytest.raises(LookupError, match="exp has no body for int32"):
        expression("exp", dtypes.int32, dtypes.int32, ("v0",))


@pytest.mark.parametrize(
    ("number", "dtype", "text"),
    [
        (1, dtypes.float32, "1.0f"),
        (0, dtypes.float64, "0.0"),
        (-np.inf, dtypes.float32, "-FW_INFINITY_F32"),
        (np.inf, dtypes.float64, "FW_INFINITY_F64"),
        (-(2**63), dtypes.int64, "INT64_MIN"),
        (127, dtypes.int8, "INT8_MAX"),
        (127, dtypes.int16, "127"),
        (0, dtypes.uint16, "0"),
        (2**32 - 1, dtypes.uint32, "UINT32_MAX"),
        (1, dtypes.bool_, "1"),
    ],
)
def test_a_number_is_written_as_a_literal_of_its_dtype(number: float, dtype: DType, text: str) -> None:
    assert literal(number, dtype) == text


def test_a_half_is_rounded_after_an_op_that_computes_and_not_after_one_that_selects() -> None:
    half = dtypes.float16
    assert expression("add", half, half, ("v0", "v1")) == "fw_round_f16(v0 + v1)"
    assert expression("maximum", half, half, ("v0", "v1")) == "fw_first_maximum_f32(v0, v1)"
    assert expression("maximum", dtypes.bfloat16, dtypes.bfloat16, ("v0", "v1")) == "fw_maximum_f32(v0, v1)"
