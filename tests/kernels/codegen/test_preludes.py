"""The preludes: each scalar function against a reference, through loops that the C compiler may vectorise."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.ops.bodies import BODIES

Array = NDArray[Any]
Reference = Callable[..., Array]

FLAGS = (
    *("-O3", "-march=native", "-std=gnu11", "-fPIC", "-shared"),
    *("-ffp-contract=off", "-fwrapv", "-fno-math-errno", "-fno-trapping-math"),
    *("-Wall", "-Werror", "-Wno-unused-function"),
)
TYPES: dict[str, tuple[str, Any]] = {
    "f32": ("float", np.float32),
    "f64": ("double", np.float64),
    "i32": ("int32_t", np.int32),
    "i64": ("int64_t", np.int64),
    "u8": ("uint8_t", np.uint8),
    "b8": ("uint8_t", np.bool_),
    "half": ("uint16_t", np.uint16),
}
FLOATS = ("f32", "f64")
INTEGERS = ("i32", "i64", "u8")
SCALARS = (*FLOATS, *INTEGERS, "b8")


class Case(NamedTuple):
    """A unary float function: its reference in float64, its error bound, and where random arguments come from."""

    op: str
    reference: Reference
    most_ulps: float
    low: float
    high: float


def _sigmoid(x: Array) -> Array:
    return np.asarray(np.where(x < 0, np.exp(x), 1.0) / (1.0 + np.exp(-np.abs(x))))


def _silu(x: Array) -> Array:
    return np.asarray(np.where(x == -np.inf, -0.0, x * _sigmoid(x)))


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def _gelu(x: Array) -> Array:
    tail = np.array([math.erfc(value * -math.sqrt(0.5)) for value in x])
    return np.asarray(np.where(x == -np.inf, -0.0, 0.5 * x * tail))


def _erf(x: Array) -> Array:
    return np.array([math.erf(value) for value in x])


CASES = (
    Case("exp", np.exp, 1.5, -106, 90),
    Case("exp2", np.exp2, 1.5, -152, 130),
    Case("expm1", np.expm1, 2.0, -20, 90),
    Case("log", np.log, 1.5, 0, 4),
    Case("log2", np.log2, 1.5, 0, 4),
    Case("log10", np.log10, 1.5, 0, 4),
    Case("log1p", np.log1p, 2.0, -1, 4),
    Case("sin", np.sin, 1.5, -1e6, 1e6),
    Case("cos", np.cos, 1.5, -1e6, 1e6),
    Case("tan", np.tan, 3.5, -1e6, 1e6),
    Case("tanh", np.tanh, 2.5, -10, 10),
    Case("erf", _erf, 1.5, -4, 4),
    Case("rsqrt", lambda x: 1.0 / np.sqrt(x), 1.5, 0, 4),
    Case("sigmoid", _sigmoid, 2.5, -110, 20),
    Case("silu", _silu, 3.5, -110, 20),
    Case("softplus", _softplus, 2.0, -110, 20),
    Case("gelu", _gelu, 4.0, -5, 5),
)

# Ops whose result is fixed by IEEE arithmetic or by definition: NumPy's bits are ours.
EXACT_UNARY: dict[str, Reference] = {
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "sign": np.sign,
    "square": np.square,
    "round": np.rint,
}
EXACT_BINARY: dict[str, Reference] = {
    "minimum": np.minimum,
    "maximum": np.maximum,
    "remainder": np.remainder,
    "floor_divide": np.floor_divide,
}
TESTS = ("isnan", "isinf", "isfinite")
INTEGER_UNARY: dict[str, Reference] = {
    "negative": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "square": np.square,
    "relu": EXACT_UNARY["relu"],
}
INTEGER_BINARY: dict[str, Reference] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
} | EXACT_BINARY
HALVES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
FLOAT32_SPECIALS = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1.5, -2.5, 10.0, -10.0, 1e-45, -1e-45, 1.2e-38, -1.2e-38]
    + [88.9, -88.9, -104.5, 3e38, -3e38, 6.5e4, 2**23, -(2**24) - 2, np.inf, -np.inf, np.nan],
    dtype=np.float32,
)


class Function(NamedTuple):
    """The type codes of a function of the prelude, which is `name`."""

    name: str
    operands: tuple[str, ...]
    result: str


def _float_functions(code: str) -> Iterator[Function]:
    for op in [case.op for case in CASES] + list(EXACT_UNARY):
        yield Function(f"fw_{op}_{code}", (code,), code)
    for op in ["atan2", "power", "first_minimum", "first_maximum", *EXACT_BINARY]:
        yield Function(f"fw_{op}_{code}", (code, code), code)
    for op in TESTS:
        yield Function(f"fw_{op}_{code}", (code,), "b8")
    yield Function(f"fw_clip_{code}", (code, code, code), code)
    yield Function(f"fw_canonical_{code}", (code,), code)


def _integer_functions(code: str) -> Iterator[Function]:
    for op in INTEGER_UNARY:
        yield Function(f"fw_{op}_{code}", (code,), code)
    for op in ["power", *INTEGER_BINARY]:
        yield Function(f"fw_{op}_{code}", (code, code), code)


def _casts_from(code: str) -> Iterator[Function]:
    for target in SCALARS:
        yield Function(f"fw_cast_{code}_{target}", (code,), target)
    for half in HALVES:
        yield Function(f"fw_cast_{code}_{half}", (code,), "f32")


def _half_functions(half: str) -> Iterator[Function]:
    yield Function(f"fw_load_{half}", ("half",), "f32")
    yield Function(f"fw_store_{half}", ("f32",), "half")
    yield Function(f"fw_round_{half}", ("f32",), "f32")


def _functions() -> Iterator[Function]:
    yield from chain.from_iterable(map(_float_functions, FLOATS))
    yield from chain.from_iterable(map(_integer_functions, INTEGERS))
    yield from chain.from_iterable(map(_casts_from, SCALARS))
    yield from chain.from_iterable(map(_half_functions, HALVES))


FUNCTIONS = {function.name: function for function in _functions()}


def _loop(function: Function) -> str:
    names = [f"operand_{i}" for i in range(len(function.operands))]
    parameters = [
        f"const {TYPES[code][0]} *restrict {name}" for code, name in zip(function.operands, names, strict=True)
    ]
    parameters += [f"{TYPES[function.result][0]} *restrict out", "int64_t count"]
    call = f"{function.name}({', '.join(f'{name}[i]' for name in names)})"
    body = f"for (int64_t i = 0; i < count; i++) out[i] = {call};"
    return f"void loop_{function.name}({', '.join(parameters)}) {{ {body} }}\n"


class Loops:
    """The functions of the prelude, each as a compiled loop over arrays of one length."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def __call__(self, name: str, *operands: Array) -> Array:
        function = FUNCTIONS[name]
        arrays = [
            np.ascontiguousarray(operand, dtype=TYPES[code][1])
            for code, operand in zip(function.operands, operands, strict=True)
        ]
        out = np.empty(arrays[0].shape, dtype=TYPES[function.result][1])
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out)]
        self._library[f"loop_{name}"](*addresses, ctypes.c_int64(out.size))
        return out


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Loops:
    compiler = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (gcc, clang, cc) on the path")
    folder = tmp_path_factory.mktemp("prelude")
    source, library = folder / "loops.c", folder / "loops.so"
    source.write_text(prelude("c") + "".join(map(_loop, FUNCTIONS.values())), encoding="utf-8")
    subprocess.run(
        [compiler, *FLAGS, str(source), "-o", str(library), "-lm"],
        check=True,
    )
    return Loops(ctypes.CDLL(str(library)))


@pytest.fixture(autouse=True)
def _numpy_is_silent() -> Iterator[None]:
    """References overflow, divide by zero and cast NaN on purpose."""
    with np.errstate(all="ignore"):
        yield


def _random_bits(count: int, seed: int) -> Array:
    """Any float32 at all: every exponent equally often, infinities and NaNs among them."""
    return np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32).view(np.float32)


def _pairs(values: Array) -> tuple[Array, Array]:
    left, right = np.meshgrid(values, values)
    return left.ravel(), right.ravel()


def _ulps(result: Array, reference: Array) -> Array:
    """Distance of a float32 array from a float64 reference in float32's units in the last place."""
    bound = 2.0**128  # where the next float32 would be: infinity counts as this, so that overflow has a distance too
    expected = np.clip(reference, -bound, bound)
    _, exponent = np.frexp(np.maximum(np.abs(expected), 2.0**-126))
    distance = np.abs(np.clip(result.astype(np.float64), -bound, bound) - expected)
    return np.asarray(distance / np.ldexp(1.0, exponent - 24))


def _assert_close(result: Array, reference: Array, most_ulps: float) -> None:
    numbers = ~np.isnan(reference)
    np.testing.assert_array_equal(np.isnan(result), ~numbers)
    np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(reference[numbers]))
    assert _ulps(result[numbers], reference[numbers]).max() <= most_ulps


def _assert_same_values(result: Array, expected: Array) -> None:
    """Equal, NaN to NaN, with the same signs of zero."""
    np.testing.assert_array_equal(result, expected)
    ordinary = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[ordinary]), np.signbit(expected[ordinary]))


def test_each_function_of_floats_is_the_body_of_an_op() -> None:
    assert {case.op for case in CASES} <= set(BODIES)
    for dialect in ("c", "cuda"):
        named = set(re.findall(r"\bfw_(\w+)_f64\(double", prelude(dialect)))
        assert named - {"bits", "canonical", "fmod"} <= set(BODIES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_a_float32_function_stays_within_its_error_bound(loops: Loops, case: Case) -> None:
    uniform = np.random.default_rng(1).uniform(case.low, case.high, 20_001).astype(np.float32)
    x = np.concatenate([FLOAT32_SPECIALS, uniform, _random_bits(20_001, seed=2)])
    x = x[~(np.abs(x) >= 2**45) | np.isinf(x)] if case.op in ("sin", "cos", "tan") else x
    _assert_close(loops(f"fw_{case.op}_f32", x), case.reference(x.astype(np.float64)), case.most_ulps)


@pytest.mark.parametrize("op", ["sin", "cos"])
def test_angles_are_reduced_well_up_to_2_to_the_52_and_count_as_zero_beyond(loops: Loops, op: str) -> None:
    x = np.random.default_rng(3).uniform(2.0**45, 2.0**52, 10_001).astype(np.float32)
    reference = getattr(np, op)
    _assert_close(loops(f"fw_{op}_f32", x), reference(x.astype(np.float64)), 3.0)
    beyond = np.array([2.0**52, -3e38], dtype=np.float32)
    np.testing.assert_array_equal(loops(f"fw_{op}_f32", beyond), reference(np.zeros(2)))


@pytest.mark.parametrize(("op", "reference", "most_ulps"), [("atan2", np.arctan2, 2.5), ("power", np.power, 1.0)])
def test_a_float32_function_of_two_stays_within_its_error_bound(
    loops: Loops, op: str, reference: Reference, most_ulps: float
) -> None:
    random = np.random.default_rng(4)
    specials = _pairs(FLOAT32_SPECIALS)
    left = np.concatenate([specials[0], random.uniform(0, 50, 20_001), _random_bits(20_001, seed=5)]).astype(np.float32)
    right = np.concatenate([specials[1], random.uniform(-25, 25, 20_001), _random_bits(20_001, seed=6)])
    right = right.astype(np.float32)
    expected = reference(left.astype(np.float64), right.astype(np.float64))
    _assert_close(loops(f"fw_{op}_f32", left, right), expected, most_ulps)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_a_float64_function_agrees_with_its_reference(loops: Loops, case: Case) -> None:
    uniform = np.random.default_rng(7).uniform(case.low, case.high, 2_001)
    x = np.concatenate([FLOAT32_SPECIALS.astype(np.float64), uniform])
    result, expected = loops(f"fw_{case.op}_f64", x), np.asarray(case.reference(x))
    np.testing.assert_allclose(result, expected, rtol=2e-15, atol=0)


@pytest.mark.parametrize(("op", "reference"), [("atan2", np.arctan2), ("power", np.power)])
def test_a_float64_function_of_two_agrees_with_its_reference(loops: Loops, op: str, reference: Reference) -> None:
    left, right = _pairs(FLOAT32_SPECIALS.astype(np.float64))
    np.testing.assert_allclose(loops(f"fw_{op}_f64", left, right), reference(left, right), rtol=2e-15, atol=0)


@pytest.mark.parametrize("float_type", FLOATS)
@pytest.mark.parametrize("op", EXACT_UNARY)
def test_an_exact_function_of_one_has_numpys_values(loops: Loops, op: str, float_type: str) -> None:
    x = np.concatenate([FLOAT32_SPECIALS, _random_bits(10_001, seed=8)]).astype(TYPES[float_type][1])
    _assert_same_values(loops(f"fw_{op}_{float_type}", x), EXACT_UNARY[op](x))


@pytest.mark.parametrize("float_type", FLOATS)
@pytest.mark.parametrize("op", EXACT_BINARY)
def test_an_exact_function_of_two_has_numpys_values(loops: Loops, op: str, float_type: str) -> None:
    left, right = _pairs(np.concatenate([FLOAT32_SPECIALS, _random_bits(101, seed=9)]).astype(TYPES[float_type][1]))
    _assert_same_values(loops(f"fw_{op}_{float_type}", left, right), EXACT_BINARY[op](left, right))


@pytest.mark.parametrize("float_type", FLOATS)
@pytest.mark.parametrize("op", ["minimum", "maximum"])
def test_the_first_of_equal_numbers_is_numpys_of_float16(loops: Loops, op: str, float_type: str) -> None:
    left, right = _pairs(FLOAT32_SPECIALS.astype(np.float16))
    given = [each.astype(TYPES[float_type][1]) for each in (left, right)]
    _assert_same_values(loops(f"fw_first_{op}_{float_type}", *given), EXACT_BINARY[op](left, right))


@pytest.mark.parametrize("float_type", FLOATS)
def test_clip_has_numpys_values_for_bounds_that_are_scalars(loops: Loops, float_type: str) -> None:
    x = FLOAT32_SPECIALS.astype(TYPES[float_type][1])
    for bound in x:
        for low, high in ((bound, x.dtype.type(2)), (x.dtype.type(-2), bound), (bound, -bound)):
            clipped = loops(f"fw_clip_{float_type}", x, np.full_like(x, low), np.full_like(x, high))
            _assert_same_values(clipped, np.clip(x, low, high))


@pytest.mark.parametrize("float_type", FLOATS)
@pytest.mark.parametrize("op", TESTS)
def test_a_question_about_a_float_is_answered_as_numpy_answers_it(loops: Loops, op: str, float_type: str) -> None:
    x = np.concatenate([FLOAT32_SPECIALS, _random_bits(1_001, seed=10)]).astype(TYPES[float_type][1])
    np.testing.assert_array_equal(loops(f"fw_{op}_{float_type}", x), getattr(np, op)(x))


def _integers(code: str) -> Array:
    limits = np.iinfo(TYPES[code][1])
    ends = [limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 3, 7]
    negatives = [] if limits.min == 0 else [-1, -2, -3, -7]
    random = np.random.default_rng(11).integers(limits.min, limits.max, 100, dtype=TYPES[code][1])
    return np.concatenate([np.array(ends + negatives, dtype=TYPES[code][1]), random])


@pytest.mark.parametrize("code", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_UNARY)
def test_integer_arithmetic_on_one_has_numpys_values(loops: Loops, op: str, code: str) -> None:
    x = _integers(code)
    np.testing.assert_array_equal(loops(f"fw_{op}_{code}", x), INTEGER_UNARY[op](x))


@pytest.mark.parametrize("code", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_BINARY)
def test_integer_arithmetic_wraps_and_divides_by_zero_to_zero(loops: Loops, op: str, code: str) -> None:
    left, right = _pairs(_integers(code))
    np.testing.assert_array_equal(loops(f"fw_{op}_{code}", left, right), INTEGER_BINARY[op](left, right))


@pytest.mark.parametrize("code", INTEGERS)
@pytest.mark.parametrize("op", ["bitwise_left_shift", "bitwise_right_shift"])
def test_a_shift_by_a_negative_count_or_beyond_the_width_shifts_all_bits_out(loops: Loops, op: str, code: str) -> None:
    width = 8 * np.dtype(TYPES[code][1]).itemsize
    counts = np.array([0, 1, width - 1, width, width + 1, -1, -width, 2**63 - 1]).astype(TYPES[code][1])
    values, counts = (column.ravel() for column in np.meshgrid(_integers(code), counts))
    shifted = [_shifted(op, *pair, width) for pair in zip(values.tolist(), counts.tolist(), strict=True)]
    expected = np.array([value % 2**width for value in shifted], np.uint64).astype(TYPES[code][1])
    np.testing.assert_array_equal(loops(f"fw_{op}_{code}", values, counts), expected)


def _shifted(op: str, value: int, count: int, width: int) -> int:
    """In Python's integers, which have no width."""
    distance = count if 0 <= count < width else width
    return value << distance if op == "bitwise_left_shift" else value >> distance


@pytest.mark.parametrize("code", INTEGERS)
def test_integer_power_wraps(loops: Loops, code: str) -> None:
    base, exponent = _pairs(_integers(code))
    base, exponent = base[exponent >= 0], exponent[exponent >= 0]
    np.testing.assert_array_equal(loops(f"fw_power_{code}", base, exponent), np.power(base, exponent))


@pytest.mark.parametrize("code", ["i32", "i64"])
def test_a_negative_integer_exponent_gives_zero_except_for_units(loops: Loops, code: str) -> None:
    base, exponent = np.array([0, 1, -1, -1, 5, -5]), np.array([-1, -2, -2, -3, -1, -2])
    np.testing.assert_array_equal(loops(f"fw_power_{code}", base, exponent), [0, 1, 1, -1, 0, 0])


def _saturated(x: float, code: str) -> int:
    limits = np.iinfo(TYPES[code][1])
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return int(limits.max if x > 0 else limits.min)
    return min(max(math.trunc(x), int(limits.min)), int(limits.max))


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
def test_floats_convert_to_integers_towards_zero_and_saturate(loops: Loops, source: str, target: str) -> None:
    ends = [2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 2147483520, 2147483647.5, 255.9, 256, -0.9]
    x = np.concatenate([FLOAT32_SPECIALS, _random_bits(2_001, seed=12), ends]).astype(TYPES[source][1])
    expected = [_saturated(float(value), target) for value in x]
    np.testing.assert_array_equal(loops(f"fw_cast_{source}_{target}", x), np.array(expected, dtype=TYPES[target][1]))


@pytest.mark.parametrize("source", [*INTEGERS, "b8"])
@pytest.mark.parametrize("target", SCALARS)
def test_integers_convert_as_numpys_do(loops: Loops, source: str, target: str) -> None:
    x = np.array([False, True]) if source == "b8" else _integers(source)
    np.testing.assert_array_equal(loops(f"fw_cast_{source}_{target}", x), x.astype(TYPES[target][1]))


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", ["f32", "f64", "b8"])
def test_floats_convert_to_floats_and_booleans_as_numpys_do(loops: Loops, source: str, target: str) -> None:
    x = np.concatenate([FLOAT32_SPECIALS, _random_bits(1_001, seed=13)]).astype(TYPES[source][1])
    np.testing.assert_array_equal(loops(f"fw_cast_{source}_{target}", x), x.astype(TYPES[target][1]))


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("source", ["f64", "i32", "i64", "u8", "b8"])
def test_other_types_convert_to_halves_as_numpys_do(loops: Loops, source: str, half: str) -> None:
    ties = np.float64(1 + 2.0**-11) * np.array([1, 1 + 2.0**-40, 1 - 2.0**-40, 2.0**-20, 2.0**-40])
    floats = np.concatenate([FLOAT32_SPECIALS, ties, np.random.default_rng(14).normal(0, 1000, 10_001)])
    integers = np.array([False, True]) if source == "b8" else _integers(source) if source in INTEGERS else floats
    expected = integers.astype(HALVES[half]).astype(np.float32)
    _assert_same_values(loops(f"fw_cast_{source}_{half}", integers), expected)


@pytest.mark.parametrize("half", HALVES)
def test_every_half_loads_to_its_value_and_stores_back(loops: Loops, half: str) -> None:
    patterns = np.arange(65536, dtype=np.uint16)
    expected = patterns.view(HALVES[half]).astype(np.float32)
    _assert_same_values(loops(f"fw_load_{half}", patterns), expected)
    loaded = loops(f"fw_load_{half}", patterns)
    np.testing.assert_array_equal(loops(f"fw_store_{half}", loaded), patterns)


def _floats_around_halves(half: str) -> Array:
    """Random floats, every half, every midpoint of two, and the neighbours of both."""
    values = np.arange(65536, dtype=np.uint16).view(HALVES[half]).astype(np.float32)
    middles = np.uint32(1 << 12 if half == "f16" else 1 << 15)
    around = [(values.view(np.uint32) + offset).view(np.float32) for offset in (0, middles - 1, middles, middles + 1)]
    return np.concatenate([_random_bits(1_000_001, seed=15), *around])


@pytest.mark.parametrize("half", HALVES)
def test_floats_store_as_the_nearest_half_ties_to_even(loops: Loops, half: str) -> None:
    x = _floats_around_halves(half)
    expected = x.astype(HALVES[half])
    stored = loops(f"fw_store_{half}", x)
    numbers = ~np.isnan(x)  # a NaN that no half has is never stored
    np.testing.assert_array_equal(stored[numbers], expected.view(np.uint16)[numbers])


@pytest.mark.parametrize("float_type", FLOATS)
def test_every_nan_becomes_the_one_and_every_other_value_keeps_its_bits(loops: Loops, float_type: str) -> None:
    dtype = np.dtype(TYPES[float_type][1])
    bits = np.random.default_rng(17).integers(0, 256, 80_000, dtype=np.uint8).view(f"u{dtype.itemsize}")
    bits[::2] |= np.array(np.inf, dtype).view(bits.dtype)
    x = bits.view(dtype)
    assert 0.4 < np.isnan(x).mean() < 0.6
    expected = np.where(np.isnan(x), np.array(np.nan, dtype), x)
    assert loops(f"fw_canonical_{float_type}", x).tobytes() == expected.tobytes()


@pytest.mark.parametrize("half", HALVES)
def test_rounding_to_a_half_is_storing_and_loading(loops: Loops, half: str) -> None:
    x = _floats_around_halves(half)
    _assert_same_values(loops(f"fw_round_{half}", x), x.astype(HALVES[half]).astype(np.float32))


@pytest.mark.parametrize("function", [f for f in FUNCTIONS.values() if "f32" in f.operands], ids=lambda f: f.name)
def test_vector_body_scalar_tail_and_a_lone_call_agree_in_every_bit(loops: Loops, function: Function) -> None:
    length = 79
    operands = [_random_bits(length, seed=16 + i) for i in range(len(function.operands))]
    operands = [
        np.where(np.arange(length) % 2, x, np.float32(8) * np.sin(np.arange(length) + x.size)) for x in operands
    ]
    together = loops(function.name, *operands)
    alone = np.concatenate([loops(function.name, *(x[i : i + 1] for x in operands)) for i in range(length)])
    numbers = ~np.isnan(together)  # which NaN it is, is settled where somebody sees it
    np.testing.assert_array_equal(numbers, ~np.isnan(alone))
    assert together[numbers].tobytes() == alone[numbers].tobytes()


@pytest.mark.parametrize("dialect", ["c", "cuda"])
def test_a_prelude_is_its_target_followed_by_the_common_math(dialect: str) -> None:
    source = prelude(dialect)
    assert source.index("#define FW_FN") < source.index("fw_exp_f32")
    assert source.isascii()


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match="metal"):
        prelude("metal")


def _cuda_source() -> str:
    """One kernel a function, so that none is dropped unread."""
    loops = "".join('extern "C" __global__ ' + _loop(function) for function in FUNCTIONS.values())
    return prelude("cuda") + loops.replace("*restrict ", "*__restrict__ ")


def test_the_cuda_prelude_compiles_with_nvcc(tmp_path: Path) -> None:
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("no nvcc on the path")
    source = tmp_path / "prelude.cu"
    source.write_text(_cuda_source(), encoding="utf-8")
    subprocess.run([compiler, "-ptx", "--fmad=false", str(source), "-o", str(tmp_path / "prelude.ptx")], check=True)


def _nvrtc() -> ctypes.CDLL | None:
    """NVRTC from NVIDIA's wheels or the system."""
    wheels = Path(sysconfig.get_path("purelib"), "nvidia").glob("*/lib/libnvrtc.so.*")
    names = [*map(str, wheels), *filter(None, [ctypes.util.find_library("nvrtc")])]
    return ctypes.CDLL(names[0]) if names else None


def test_the_cuda_prelude_compiles_with_nvrtc() -> None:
    nvrtc = _nvrtc()
    if nvrtc is None:
        pytest.skip("no NVRTC library, neither in a wheel nor on the system")
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), _cuda_source().encode(), b"prelude.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 1)(b"--fmad=false")
    status = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = ctypes.create_string_buffer(1 << 20)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    assert status == 0, log.value.decode()
