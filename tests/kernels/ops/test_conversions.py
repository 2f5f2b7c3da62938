"""Conversions between all dtypes, and their defined values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.ops.conversions import cast, narrow, scalar, widen
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Spec
from tests.strategies import random_array
from tests.tolerances import assert_same_numbers

Array = npt.NDArray[Any]
INTEGERS = [dtypes.uint8, dtypes.int32, dtypes.int64]
FLOATS = [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]
HALVES = [dtypes.float16, dtypes.bfloat16]
NAN, INF = float("nan"), float("inf")


def _array(values: list[Any], dtype: DType) -> Array:
    return np.array(values, dtypes.to_numpy(dtype))


def _random(dtype: DType, elements: int = 3000) -> Array:
    random = np.random.default_rng(7)
    from_bits = random.integers(0, 256, elements * dtype.itemsize_bytes, np.uint8).view(dtypes.to_numpy(dtype))
    usual = random_array(random, Spec(dtype, (elements,)), special_share=0.1, is_moderate=False)
    return np.concatenate([usual, from_bits]) if dtype.is_floating else usual


@pytest.mark.parametrize("source", dtypes.ALL)
@pytest.mark.parametrize("target", dtypes.ALL)
def test_conversions_that_numpy_defines_are_numpys(source: DType, target: DType) -> None:
    values = _random(source)
    if source.is_floating and target.is_integer:
        least, greatest = np.iinfo(target.name).min, np.iinfo(target.name).max
        wide = widen(np, values, source)
        values = values[(wide > least) & (wide < greatest)]
    with np.errstate(all="ignore"):
        expected = values.astype(dtypes.to_numpy(target))
    assert_same_numbers(cast(np, values, source, target), expected)


def test_the_same_dtype_is_the_same_array() -> None:
    array = np.ones(3, np.float32)
    assert cast(np, array, dtypes.float32, dtypes.float32) is array


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
def test_floats_saturate_to_integers_and_nan_is_zero(source: DType, target: DType) -> None:
    limits = np.iinfo(target.name)
    values = _array([NAN, INF, -INF, -0.0, 1.75, -0.5], source)
    result = cast(np, values, source, target)
    assert result.tolist() == [0, limits.max, limits.min, 0, 1, 0]


@pytest.mark.parametrize("target", INTEGERS)
@given(value=st.floats(-(2.0**65), 2.0**65))
def test_a_float64_is_cut_off_and_then_limited(target: DType, value: float) -> None:
    limits = np.iinfo(target.name)
    expected = min(max(int(value), limits.min), limits.max)
    assert cast(np, _array([value], dtypes.float64), dtypes.float64, target).tolist() == [expected]


@pytest.mark.parametrize("source", FLOATS)
def test_everything_but_zero_is_true(source: DType) -> None:
    values = _array([0.0, -0.0, NAN, INF, -1.0, 0.5], source)
    assert cast(np, values, source, dtypes.bool_).tolist() == [False, False, True, True, True, True]


@given(st.floats(width=64))
def test_a_float64_is_rounded_to_float16_once(value: float) -> None:
    result = cast(np, np.array([value]), dtypes.float64, dtypes.float16)
    with np.errstate(all="ignore"):
        assert_same_numbers(result, np.array([value]).astype(np.float16))


@pytest.mark.parametrize("dtype", HALVES)
def test_halves_are_widened_exactly_and_come_back(dtype: DType) -> None:
    every = np.arange(2**16, dtype=np.uint16).view(dtypes.to_numpy(dtype))
    wide = widen(np, every, dtype)
    assert_same_numbers(wide, every.astype(np.float32))
    assert_same_numbers(narrow(np, wide, dtype), every)


@given(st.floats(width=32, allow_nan=False, min_value=-60000, max_value=60000))
def test_float32_is_rounded_to_the_nearest_half_ties_to_even(value: float) -> None:
    bits = int(narrow(np, np.array([value], np.float32), dtypes.bfloat16).view(np.uint16)[0])
    here, lower, upper = (
        Fraction(float(np.array([neighbour << 16], np.uint32).view(np.float32)[0]))
        for neighbour in (bits, max(bits & 0x7FFF, 1) - 1 | bits & 0x8000, bits + 1)
    )
    distance = abs(here - Fraction(value))
    for other in (lower, upper):
        assert distance < abs(other - Fraction(value)) or bits % 2 == 0 or other == here


# ---- scalars ----


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (True, dtypes.bool_, True),
        (2, dtypes.bool_, True),
        (NAN, dtypes.bool_, True),
        (300, dtypes.uint8, 44),
        (-1, dtypes.uint8, 255),
        (300.7, dtypes.uint8, 255),
        (2**31, dtypes.int32, -(2**31)),
        (2**63, dtypes.int64, -(2**63)),
        (2**64 - 1, dtypes.int64, -1),
        (NAN, dtypes.int64, 0),
        (INF, dtypes.int32, 2**31 - 1),
        (True, dtypes.float32, 1.0),
        (2**64 - 1, dtypes.float32, 2.0**64),
        (1e300, dtypes.float32, INF),
        (65520, dtypes.float16, INF),
        (1 / 3, dtypes.bfloat16, 0.333984375),
    ],
)
def test_a_scalar_of_a_binding_is_converted_as_arrays_are(value: float, dtype: DType, expected: float) -> None:
    result = scalar(np, value, dtype)
    assert result.shape == ()
    assert result.dtype == dtypes.to_numpy(dtype)
    assert float(result) == expected


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_scalar_keeps_the_sign_of_zero_and_nan(dtype: DType) -> None:
    assert np.signbit(scalar(np, -0.0, dtype).astype(np.float64))
    assert np.isnan(scalar(np, NAN, dtype).astype(np.float64))
