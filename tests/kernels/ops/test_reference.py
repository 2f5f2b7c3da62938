"""Every twin against NumPy's function or a definition in plain Python, and the defined values one by one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_kernels.ops.reference import twin
from fusewire_protos.ops import catalogue, dtypes, nans
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import Spec
from tests import strategies
from tests.roundings import allowance
from tests.tolerances import assert_close, assert_same_bytes, assert_same_numbers

Array = npt.NDArray[Any]
NAN, INF = float("nan"), float("inf")
FLOATS = [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]
SIGNED = [dtypes.int32, dtypes.int64]

# Exact ops that are a function of NumPy's on all dtypes that NumPy itself has and the op takes.
NUMPYS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(np, name)
        for name in (
            *("add", "subtract", "multiply", "divide", "minimum", "maximum", "where"),
            *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
            *("logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor"),
            *("isnan", "isinf", "isfinite", "negative", "abs", "sign", "floor", "ceil", "trunc", "sqrt"),
        )
    },
    "bitwise_invert": np.invert,
    "gcd": np.gcd,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "bits_of_float": lambda x: x.view(f"uint{8 * x.itemsize}"),
    "float_of_bits": lambda x: x.view(f"float{8 * x.itemsize}"),
}
# Which of two equal zeros they return differs in NumPy from dtype to dtype, and between scalars and arrays.
SELECTING = ("minimum", "maximum", "clip")
# The same functions of NumPy in float64: the twin of a narrower dtype is their result, rounded.
IN_FLOAT64: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("exp", "expm1", "log", "log1p", "exp2", "log2", "log10", "tanh")},
    "power": np.float_power,
    "atan2": np.arctan2,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "softplus": lambda x: np.logaddexp(x, 0),
}


def _run(name: str, *operands: Any, attributes: Attributes = (), starts: Sequence[int] = ()) -> Array:
    return np.asarray(twin(catalogue.BY_NAME[name])(np, operands, attributes, starts))


def _array(values: Any, dtype: DType) -> Array:
    return np.array(values, dtypes.to_numpy(dtype))


def _wide(array: Array) -> Array:
    """In float64, NaNs quiet: NumPy warns of signalling ones, and has other powers of them."""
    wide: Array = nans.settle(_quietly(lambda: array.astype(np.float64)))
    return wide


def _quietly(function: Callable[..., Any], *operands: Any) -> Array:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(function(*operands))


# ---- all ops ----


@pytest.mark.parametrize("op", catalogue.OPS, ids=lambda op: op.name)
@settings(max_examples=30)
@given(data=st.data())
def test_a_twin_gives_what_the_catalogue_infers_and_never_warns(op: Op, data: st.DataObject) -> None:
    work = data.draw(strategies.programs_of(op))
    operands = work.operands()
    before = [operand.copy() for operand in operands]
    result = twin(op)(np, operands, work.program.ops[0].attributes, work.starts)
    spec = work.program.result_spec(0)
    assert isinstance(result, np.ndarray)
    assert Spec(dtypes.from_numpy(result.dtype), result.shape) == spec
    for operand, copy in zip(operands, before, strict=True):
        assert_same_bytes(operand, copy)


@pytest.mark.parametrize("name", NUMPYS)
@settings(max_examples=60)
@given(data=st.data())
def test_exact_ops_have_numpys_bits(name: str, data: st.DataObject) -> None:
    work = data.draw(strategies.programs_of(catalogue.BY_NAME[name]))
    operands = work.operands()
    if any(operand.dtype.name == "bfloat16" for operand in operands):
        return
    dtype = dtypes.to_numpy(work.program.result_spec(0).dtype)
    result, expected = _run(name, *operands), _quietly(NUMPYS[name], *operands).astype(dtype)
    if name in SELECTING and dtype.kind == "f":
        result, expected = np.abs(result), np.abs(expected)
    assert_same_numbers(result, expected)


@pytest.mark.parametrize("name", IN_FLOAT64)
@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=15)
@given(data=st.data())
def test_functions_are_those_of_float64_rounded_once(name: str, dtype: DType, data: st.DataObject) -> None:
    op = catalogue.BY_NAME[name]
    shape = data.draw(strategies.shapes())
    operands = [data.draw(strategies.arrays(Spec(dtype, shape))) for _ in range(op.least_operands)]
    exact = _quietly(IN_FLOAT64[name], *(_wide(operand) for operand in operands))
    with np.errstate(all="ignore"):
        assert_close(_run(name, *operands), exact.astype(dtypes.to_numpy(dtype)), op, dtype)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "min", "max", "any", "all"])
@settings(max_examples=60)
@given(data=st.data())
def test_reductions_are_numpys(name: str, data: st.DataObject) -> None:
    op = catalogue.BY_NAME[name]
    work = data.draw(strategies.programs_of(op))
    (array,) = work.operands()
    axes, keepdims = work.program.ops[0].attributes
    dtype = work.program.result_spec(0).dtype
    wide = array if not dtype.is_floating else _wide(array)
    if wide.dtype == np.uint8 and name in {"sum", "prod"}:
        wide = wide.astype(np.int64)
    exact = np.asarray(_quietly(lambda: getattr(np, name)(wide, axis=axes, keepdims=keepdims)))
    limit = allowance(op, [array], (axes, keepdims), dtype)
    assert_close(_run(name, array, attributes=(axes, keepdims)), exact.astype(dtypes.to_numpy(dtype)), op, dtype, limit)


@given(st.data())
def test_a_product_is_numpys_in_float64(data: st.DataObject) -> None:
    op = catalogue.BY_NAME["matmul"]
    work = data.draw(strategies.programs_of(op))
    a, b = work.operands()
    dtype = work.program.result_spec(0).dtype
    if dtype.is_floating:
        a, b = _wide(a), _wide(b)
    expected = _quietly(np.matmul, a, b).astype(dtypes.to_numpy(dtype))
    assert_close(_run("matmul", *work.operands()), expected, op, dtype, allowance(op, [a, b], (), dtype))


# ---- defined values ----


@pytest.mark.parametrize("dtype", SIGNED)
def test_integer_division_is_pythons_and_zero_by_zero(dtype: DType) -> None:
    pairs = [(a, b) for a in (-7, -6, -1, 0, 1, 6, 7) for b in (-3, -2, -1, 0, 1, 2, 3)]
    a, b = (_array(column, dtype) for column in zip(*pairs, strict=True))
    assert _run("floor_divide", a, b).tolist() == [x // y if y else 0 for x, y in pairs]
    assert _run("remainder", a, b).tolist() == [x % y if y else 0 for x, y in pairs]


@pytest.mark.parametrize("dtype", SIGNED)
def test_the_least_integer_over_minus_one_wraps(dtype: DType) -> None:
    least = np.iinfo(dtype.name).min
    operands = _array([least], dtype), _array([-1], dtype)
    assert _run("floor_divide", *operands).tolist() == [least]
    assert _run("remainder", *operands).tolist() == [0]
    assert _run("abs", operands[0]).tolist() == _run("negative", operands[0]).tolist() == [least]


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_float_division_is_pythons_where_python_has_a_value(dtype: DType, data: st.DataObject) -> None:
    values = st.sampled_from((-7.5, -6.0, -1.0, -0.125, 0.0, -0.0, 0.5, 1.0, 6.0, 7.0))
    a, b = data.draw(values), data.draw(values)
    operands = _array([a], dtype), _array([b], dtype)
    quotient, remainder = (float(_run(name, *operands)[0]) for name in ("floor_divide", "remainder"))
    if b == 0:
        assert math.isnan(remainder)
        assert math.isnan(quotient) if a == 0 else math.isinf(quotient)
        return
    assert (quotient, math.copysign(1, quotient)) == (a // b, math.copysign(1, a // b))
    assert (remainder, math.copysign(1, remainder)) == (a % b, math.copysign(1, a % b))


def test_float_division_of_infinities_is_numpys() -> None:
    a, b = np.meshgrid(np.array([-INF, -1.0, 0.0, 3.0, INF, NAN]), np.array([-INF, -2.0, 5.0, INF, NAN]))
    for name in ("floor_divide", "remainder"):
        assert_same_numbers(_run(name, a, b), _quietly(getattr(np, name), a, b))


@pytest.mark.parametrize("dtype", SIGNED)
@given(base=st.integers(-12, 12), exponent=st.integers(-5, 90))
def test_an_integer_power_wraps_and_a_negative_one_is_zero_but_for_units(
    dtype: DType, base: int, exponent: int
) -> None:
    bits = dtype.itemsize_bytes * 8
    power = base**exponent if exponent >= 0 else {1: 1, -1: (-1) ** (exponent % 2)}.get(base, 0)
    expected = (power + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    assert int(_run("power", _array(base, dtype), _array(exponent, dtype))) == expected


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("base", "power"), [(-INF, INF), (-0.0, 0.0), (-1.0, NAN), (4.0, 2.0)])
def test_a_power_of_one_half_is_the_same_for_one_element_and_for_many(base: float, power: float, dtype: DType) -> None:
    for count in (1, 3):
        bases, halves = (_array([value] * count, dtype) for value in (base, 0.5))
        assert_same_bytes(_run("power", bases, halves), _array([power] * count, dtype))


def test_booleans_add_as_or_and_multiply_as_and() -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert _run("add", a, b).tolist() == [False, True, True, True]
    assert _run("multiply", a, b).tolist() == [False, False, False, True]


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_wins_minimum_and_maximum_and_of_equal_zeros_numpys_is_returned(dtype: DType) -> None:
    a, b = _array([NAN, 1.0, 0.0, -0.0], dtype), _array([1.0, NAN, -0.0, 0.0], dtype)
    selected = a if dtype is dtypes.float16 else b
    for name in ("minimum", "maximum"):
        result = _run(name, a, b).astype(np.float64)
        assert np.isnan(result[:2]).all()
        assert np.signbit(result[2:]).tolist() == np.signbit(selected[2:].astype(np.float64)).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
def test_clip_keeps_a_zero_that_equals_a_bound(dtype: DType) -> None:
    x, other = _array([0.0, -0.0], dtype), _array([-0.0, 0.0], dtype)
    low, high = _array(-1.0, dtype), _array(1.0, dtype)
    for bounds in ((other, high), (low, other), (other, other)):
        assert_same_bytes(_run("clip", x, *bounds), x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["relu", "sign"])
def test_relu_and_sign_of_minus_zero_are_plus_zero_and_of_nan_nan(name: str, dtype: DType) -> None:
    result = _run(name, _array([-0.0, NAN, -2.0, 3.0], dtype)).astype(np.float64)
    assert not np.signbit(result[0])
    assert np.isnan(result[1])
    assert result[2:].tolist() == ([0.0, 3.0] if name == "relu" else [-1.0, 1.0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_halves_round_to_even(dtype: DType) -> None:
    values = _array([0.5, 1.5, 2.5, -0.5, -1.5], dtype)
    result = _run("round", values)
    assert result.astype(np.float64).tolist() == [0.0, 2.0, 2.0, -0.0, -2.0]
    assert np.signbit(result.astype(np.float64)[3])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("name", "at_minus_infinity"), [("gelu", -0.0), ("silu", -0.0), ("softplus", 0.0)])
def test_activations_have_their_limits_at_infinities(name: str, at_minus_infinity: float, dtype: DType) -> None:
    result = _run(name, _array([-INF, INF, NAN], dtype)).astype(np.float64)
    assert result[0] == 0
    assert np.signbit(result[0]) == np.signbit(at_minus_infinity)
    assert result[1] == INF
    assert np.isnan(result[2])


@given(st.floats(-38, 38))
def test_gelu_is_x_times_the_normal_distribution(x: float) -> None:
    assert float(_run("gelu", np.array(x))) == pytest.approx(x * 0.5 * math.erfc(-x / math.sqrt(2)), rel=1e-12)


def test_angles_beyond_all_precision_count_as_zero_in_float32() -> None:
    x = np.array([2.0**52, -(2.0**100)], np.float32)
    assert _run("sin", x).tolist() == [0.0, -0.0]
    assert _run("cos", x).tolist() == [1.0, 1.0]
    assert np.isnan(_run("tan", np.array([INF, NAN], np.float32))).all()


@given(strategies.shapes(least_dim=1, least_rank=1), st.data())
def test_the_position_of_the_greatest_counts_over_the_reduced_axes_in_order(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    array = data.draw(strategies.arrays(Spec(dtypes.float32, shape)))
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    rows = array.transpose(*kept, *axes).reshape([shape[axis] for axis in kept] + [-1])
    for name in ("argmin", "argmax"):
        assert_same_bytes(_run(name, array, attributes=(axes, False)), np.asarray(getattr(np, name)(rows, axis=-1)))


def test_the_first_of_equals_and_the_first_nan_have_the_position() -> None:
    assert int(_run("argmax", np.array([1, 3, 3]), attributes=((0,), False))) == 1
    assert int(_run("argmin", np.array([1.0, NAN, 0.0, NAN]), attributes=((0,), False))) == 1


def test_what_is_reduced_from_nothing_is_the_identity_and_its_mean_nan() -> None:
    nothing = np.ones((2, 0), np.float32)
    assert _run("sum", nothing, attributes=((1,), False)).tolist() == [0.0, 0.0]
    assert _run("prod", nothing, attributes=((1,), False)).tolist() == [1.0, 1.0]
    assert _run("all", nothing, attributes=((1,), False)).tolist() == [True, True]
    assert np.isnan(_run("mean", nothing, attributes=((1,), False))).all()


@pytest.mark.parametrize("correction", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("name", ["var", "std"])
def test_a_correction_beyond_the_count_divides_by_zero_as_in_numpy(name: str, correction: int) -> None:
    values = np.array([1.0, 2.0, 4.0])
    expected = _quietly(lambda: getattr(np, name)(values, correction=correction))
    result = _run(name, values, np.array(float(correction)), attributes=((0,), False))
    assert float(result) == pytest.approx(float(expected))


def test_logsumexp_of_infinities_is_their_limit() -> None:
    rows = np.array([[-INF, -INF], [INF, 1.0], [1000.0, 1000.0], [NAN, 1.0]])
    result = _run("logsumexp", rows, attributes=((1,), False))
    assert result[:2].tolist() == [-INF, INF]
    assert result[2] == pytest.approx(1000 + math.log(2))
    assert np.isnan(result[3])


@given(st.data())
def test_softmax_sums_to_one_and_is_the_exponential_of_log_softmax(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    array = random.normal(size=(3, 4, 5))
    axes = data.draw(st.sampled_from(((0,), (2,), (0, 2))))
    softmax = _run("softmax", array, attributes=(axes,))
    assert softmax.sum(axis=axes) == pytest.approx(np.ones_like(softmax.sum(axis=axes)))
    assert np.exp(_run("log_softmax", array, attributes=(axes,))) == pytest.approx(softmax)


def test_layer_norm_has_mean_zero_and_variance_one() -> None:
    array = np.random.default_rng(0).normal(3.0, 2.0, (4, 50))
    result = _run("layer_norm", array, np.array(0.0), attributes=((1,),))
    assert result.mean(axis=1) == pytest.approx(np.zeros(4), abs=1e-12)
    assert result.var(axis=1) == pytest.approx(np.ones(4))


def test_indices_of_take_are_clamped() -> None:
    result = _run("take", np.array([10, 20, 30]), np.array([-5, -1, 0, 2, 3, 2**62]), attributes=(0,))
    assert result.tolist() == [10, 10, 10, 30, 30, 30]


def test_one_hot_of_a_class_that_does_not_exist_is_all_zeros() -> None:
    result = _run("one_hot", np.array([1, -1, 3], np.int32), attributes=(3, dtypes.float32.code))
    assert result.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


# ---- views, moves, creation ----


@given(strategies.shapes(least_rank=1), st.data())
def test_a_slice_is_pythons_and_shares_memory(shape: tuple[int, ...], data: st.DataObject) -> None:
    chosen = [range(dim)[data.draw(st.slices(dim))] for dim in shape]
    axes = tuple(range(len(shape)))
    attributes = (axes, tuple(map(len, chosen)), tuple(part.step for part in chosen), ())
    array = np.arange(math.prod(shape)).reshape(shape)
    result = _run("slice", array, attributes=attributes, starts=[part.start for part in chosen])
    assert_same_bytes(result, array[np.ix_(*map(list, chosen))].astype(np.int64))
    assert result.size == 0 or np.shares_memory(result, array)


def test_an_integer_index_drops_its_axis_down_to_rank_zero() -> None:
    array = np.arange(6).reshape(2, 3)
    attributes = ((0, 1), (1, 1), (1, 1), (0, 1))
    result = _run("slice", array, attributes=attributes, starts=(1, 2))
    assert (result.shape, int(result)) == ((), 5)


def test_views_share_memory_and_moves_do_not() -> None:
    array = np.arange(6.0).reshape(2, 3)
    for name, attributes in (("reshape", ((3, 2),)), ("transpose", ((1, 0),)), ("broadcast_to", ((4, 2, 3),))):
        assert np.shares_memory(_run(name, array, attributes=attributes), array)
    assigned = _run("assign_slice", array, np.array(9.0), attributes=((1,), (2,), (-2,), ()), starts=(2,))
    assert assigned.tolist() == [[9, 1, 9], [9, 4, 9]]
    assert array[0, 0] == 0


def test_an_assigned_value_is_cast_to_the_dtype_of_its_target() -> None:
    result = _run(
        "assign_slice", np.zeros(3, np.uint8), np.array([300.0, NAN]), attributes=((0,), (2,), (1,), ()), starts=(1,)
    )
    assert_same_bytes(result, np.array([0, 255, 0], np.uint8))


def test_concat_promotes() -> None:
    result = _run("concat", np.array([1], np.int32), np.array([0.5], np.float32), attributes=(0,))
    assert_same_bytes(result, np.array([1.0, 0.5]))


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_arange_is_start_plus_index_times_step(dtype: DType) -> None:
    result = _run("arange", _array(1, dtype), _array(1, dtype), attributes=(5, dtype.code))
    expected = [True] * 5 if dtype.is_boolean else [1, 2, 3, 4, 5]
    assert_same_bytes(result, _array(expected, dtype))


def test_arange_of_halves_counts_beyond_what_halves_can() -> None:
    result = _run(
        "arange", np.array(0, np.float16), np.array(0.25, np.float16), attributes=(70_000, dtypes.float16.code)
    )
    assert float(result[69_999]) == float(np.float16(69_999 * 0.25))


def test_linspace_is_computed_in_float64() -> None:
    result = _run("linspace", np.array(0.0), np.array(0.1), attributes=(4, dtypes.float32.code))
    assert_same_bytes(result, (np.arange(4) * 0.1).astype(np.float32))


@pytest.mark.parametrize("diagonal", [-2, 0, 1, 9])
def test_eye_is_numpys(diagonal: int) -> None:
    result = _run("eye", attributes=(3, 4, diagonal, dtypes.int32.code))
    assert_same_bytes(result, np.eye(3, 4, diagonal, np.int32))
