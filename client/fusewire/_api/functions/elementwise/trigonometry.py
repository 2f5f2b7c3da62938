"""Inverse trigonometric functions and hyperbolic ones, each in a few ops, and degrees.

Each is accurate to a few units in the last place over its whole range: no step loses digits by a difference of near
numbers, and none overflows unless the result does. Integers are computed in the float that `exp` of them has.
"""

from __future__ import annotations

import math
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs, atan2, exp, expm1, log, log1p, multiply, sqrt  # noqa: A004  # the standard's name
from fusewire._api.functions.dtypes import finfo
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops.float_operands import in_floats

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cosh",
    "deg2rad",
    "rad2deg",
    "sinh",
]

_LARGE = 2.0**28  # above it, x² + 1 and x² − 1 are x² in every dtype


@in_floats
def acos(x: Any, /) -> Array:
    """Returns the angle from 0 to π whose cosine is `x`; NaN outside −1..1."""
    return atan2(_other_leg(x), x)


@in_floats
def asin(x: Any, /) -> Array:
    """Returns the angle from −π/2 to π/2 whose sine is `x`; NaN outside −1..1."""
    return atan2(x, _other_leg(x))


@in_floats
def atan(x: Any, /) -> Array:
    """Returns the angle from −π/2 to π/2 whose tangent is `x`."""
    return atan2(x, 1.0)


@in_floats
def sinh(x: Any, /) -> Array:
    """Returns the hyperbolic sine of `x`."""
    size = abs(x)
    grown = expm1(size)
    return _odd(x, where(size < _overflow(x), 0.5 * (grown + grown / (grown + 1)), _half_exp(size)))


@in_floats
def cosh(x: Any, /) -> Array:
    """Returns the hyperbolic cosine of `x`."""
    size = abs(x)
    grown = exp(size)
    return where(size < _overflow(x), 0.5 * grown + 0.5 / grown, _half_exp(size))


@in_floats
def asinh(x: Any, /) -> Array:
    """Returns the number whose hyperbolic sine is `x`."""
    size = abs(x)
    square = size * size
    near = log1p(size + square / (1 + sqrt(1 + square)))
    is_small = size < _LARGE
    return _odd(x, where(is_small, near, log(where(is_small, 1.0, size)) + math.log(2)))  # no gradient meets log 0


@in_floats
def acosh(x: Any, /) -> Array:
    """Returns the number from 0 up whose hyperbolic cosine is `x`; NaN below 1."""
    beyond = x - 1
    near = log1p(beyond + sqrt(beyond * (beyond + 2)))
    return where(x < 1, math.nan, where(x < _LARGE, near, log(x) + math.log(2)))


@in_floats
def atanh(x: Any, /) -> Array:
    """Returns the number whose hyperbolic tangent is `x`; ±∞ at ±1, and NaN beyond."""
    size = abs(x)
    return _odd(x, 0.5 * log1p(2 * size / (1 - size)))


@in_floats
def deg2rad(x: Any, /) -> Array:
    """Returns an angle given in degrees in radians."""
    return multiply(x, math.pi / 180)


@in_floats
def rad2deg(x: Any, /) -> Array:
    """Returns an angle given in radians in degrees."""
    return multiply(x, 180 / math.pi)


def _other_leg(x: Array) -> Array:
    """Returns sqrt(1 − x²). The factors lose no digits near ±1."""
    return sqrt((1 - x) * (1 + x))


def _overflow(x: Array) -> float:
    """Returns a number below which `exp` does not overflow, and not far below."""
    return math.floor(math.log(finfo(x.dtype).max))


def _half_exp(x: Array) -> Array:
    """Returns exp(x) / 2, also where exp(x) overflows and its half does not."""
    root = exp(0.5 * x)
    return (0.5 * root) * root


def _odd(x: Array, of_size: Array) -> Array:
    """Returns an odd function of `x` from that of |x|. At zeros it is `x`, with its sign."""
    return where(x == 0, x, where(x < 0, -of_size, of_size))
