"""Elementwise arithmetic that consists of a few ops."""

from __future__ import annotations

import math
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import (
    abs,  # noqa: A004  # the standard's name
    divide,
    exp,
    exp2,
    floor_divide,
    gcd,
    isfinite,
    isinf,
    isnan,
    log1p,
    log2,
    maximum,
    minimum,
    power,
    remainder,
    sin,
    sqrt,
    trunc,
)
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.functions.elementwise.signs import copysign
from fusewire._api.ops.float_operands import arrays_in, complex_functions, in_floats, in_own_floats, promoted, uploaded
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.operations import astype
from fusewire._errors import DtypeError
from fusewire_protos.ops import dtypes

__all__ = [
    "bitwise_count",
    "cbrt",
    "divmod",
    "fabs",
    "fix",
    "float_power",
    "fmax",
    "fmin",
    "fmod",
    "heaviside",
    "hypot",
    "lcm",
    "logaddexp",
    "logaddexp2",
    "modf",
    "positive",
    "reciprocal",
    "rint",
    "sinc",
]


def bitwise_count(x: Any, /) -> Array:
    """Returns how many bits of the size of an integer are 1, in uint8. Raises DtypeError for floats.

    The bits are added in pairs, then in fours, then in bytes.
    """
    given = asarray(x)
    if not (given.dtype.is_integer or given.dtype.is_boolean):
        raise DtypeError(f"bitwise_count takes integers, not {given.dtype.name}")
    bits = astype(given if given.dtype.is_boolean else abs(given), dtypes.uint64)
    if given.dtype.is_signed:  # the size of the least integer has the bits of that integer
        bits = bits & (2 ** (8 * given.dtype.itemsize_bytes) - 1)
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return astype((bits * 0x0101010101010101) >> 56, dtypes.uint8)


def positive(x: Any, /) -> Array:
    """Returns a copy of `x`. Raises DtypeError for booleans, as `negative` does."""
    given = asarray(x)
    if given.dtype.is_boolean:
        raise DtypeError("positive is not defined for bool; cast with astype first")
    return given.copy()


def reciprocal(x: Any, /) -> Array:
    """Returns 1 / `x`. Raises DtypeError for integers, whose reciprocals are 0 nearly everywhere."""
    given = asarray(x)
    if given.dtype.is_complex:
        inverse: Array = complex_functions["reciprocal"](given)
        return inverse
    if not given.dtype.is_floating:
        raise DtypeError(f"reciprocal is not defined for {given.dtype.name}; write 1 / x for floats")
    return divide(1, given)


@in_floats
def hypot(x1: Any, x2: Any, /) -> Array:
    """Returns sqrt(`x1`² + `x2`²), without overflow between; ∞ if either is infinite, even beside NaN.

    fw.hypot(3.0, 4.0)  # 5.0
    """
    a, b = abs(x1), abs(x2)
    longer = maximum(a, b)
    ratio = minimum(a, b) / where(longer == 0, 1.0, longer)
    return where(isinf(a) | isinf(b), math.inf, longer * sqrt(1 + ratio * ratio))


@in_floats
def logaddexp(x1: Any, x2: Any, /) -> Array:
    """Returns log(exp(`x1`) + exp(`x2`)), without overflow between."""
    difference = where(x1 == x2, 0.0, x1 - x2)  # of equal infinities too
    return maximum(x1, x2) + log1p(exp(-abs(difference)))


@in_floats
def cbrt(x: Any, /) -> Array:
    """Returns the cube root of `x`, which is negative for a negative `x`."""
    size = abs(x)
    near = exp2(log2(size) / 3)
    root = near - (near - size / (near * near)) / 3  # Newton's step doubles the digits
    return where(isfinite(x) & (x != 0), where(x < 0, -root, root), x)


def fmin(x1: Any, x2: Any, /) -> Array:
    """Returns the lesser of two elements; if one is NaN, the other."""
    a, b = promoted(x1, x2)
    return _other_if_nan(a, b, minimum(a, b))


def fmax(x1: Any, x2: Any, /) -> Array:
    """Returns the greater of two elements; if one is NaN, the other."""
    a, b = promoted(x1, x2)
    return _other_if_nan(a, b, maximum(a, b))


def _other_if_nan(a: Array, b: Array, chosen: Array) -> Array:
    if not a.dtype.is_floating:
        return chosen
    return where(isnan(a), b, where(isnan(b), a, chosen))


def fmod(x1: Any, x2: Any, /) -> Array:
    """Returns the remainder of the division rounded towards 0, exactly, with the sign of `x1`; of integers by 0, 0."""
    a, b = promoted(x1, x2)
    if a.dtype.is_floating:
        return copysign(remainder(abs(a), abs(b)), a)
    rest = remainder(a, b)
    return where((rest != 0) & ((a < 0) != (b < 0)), rest - b, rest)


def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:  # noqa: A001  # NumPy's name
    """Returns the quotient rounded down, and its remainder, as `floor_divide` and `remainder` do."""
    return floor_divide(x1, x2), remainder(x1, x2)


def lcm(x1: Any, x2: Any, /) -> Array:
    """Returns the least common multiple of two integers, without sign; 0 beside 0. Raises DtypeError for others."""
    shared = gcd(x1, x2)
    return floor_divide(abs(x1), shared) * abs(x2)


def modf(x: Any, /) -> tuple[Array, Array]:
    """Returns the fraction and the whole part of `x`, both with its sign and in a float dtype."""
    given = asarray(x)
    wide = astype(given, dtypes.to_floating(given.dtype), copy=False)
    whole = trunc(wide)
    return copysign(where(isinf(wide), 0.0, wide - whole), wide), whole


def rint(x: Any, /) -> Array:
    """Returns the nearest whole number, of two equally near the even one, in a float dtype."""
    given = asarray(x)
    return astype(given, dtypes.to_floating(given.dtype), copy=False).round()


def fix(x: Any, /) -> Array:
    """Returns `x` without its fraction, as `trunc` does."""
    return trunc(x)


def fabs(x: Any, /) -> Array:
    """Returns `x` without its sign, in a float dtype."""
    given = asarray(x)
    return abs(astype(given, dtypes.to_floating(given.dtype), copy=False))


def float_power(x1: Any, x2: Any, /) -> Array:
    """Returns `x1` to the power of `x2` in float64, also for integers and a negative power."""
    a, b = arrays_in(dtypes.float64, uploaded((x1, x2)))
    return power(a, b)


@in_own_floats
def heaviside(x1: Any, x2: Any, /) -> Array:
    """Returns 0 where `x1` is negative, 1 where it is positive, and `x2` where it is 0; of NaN, NaN."""
    return where(isnan(x1), x1, where(x1 == 0, x2, where(x1 > 0, 1.0, 0.0)))


@in_floats
def logaddexp2(x1: Any, x2: Any, /) -> Array:
    """Returns log2(2^`x1` + 2^`x2`), without overflow between."""
    difference = where(x1 == x2, 0.0, x1 - x2)  # of equal infinities too
    return maximum(x1, x2) + log1p(exp2(-abs(difference))) * (1 / math.log(2))


@in_floats
def sinc(x: Any, /) -> Array:
    """Returns sin(π`x`) / (π`x`), and 1 at 0. The error is that of π`x`, so that zeros at whole numbers are near 0."""
    angle = where(x == 0, 1e-20, x) * math.pi
    return sin(angle) / angle
