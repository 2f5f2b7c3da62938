"""Calls of elementwise functions."""

from __future__ import annotations

import numpy as np

from tests.differential import draw
from tests.differential.calls import Call
from tests.differential.draw import ALL, DISTINCT_ENOUGH, FLOATS, INTEGERS, NUMBERS, PLAIN, TAME, WILD
from tests.differential.kinds.patterns import (
    Kind,
    Random,
    alike,
    elements,
    named,
)


def _power(name: str, random: Random) -> Call:
    """Integers have small exponents: a negative one is refused."""
    whole, dtype = draw.shape(random), draw.dtype(random, NUMBERS)
    x = draw.array(random, dtype, draw.thinned(random, whole), WILD)
    y = draw.array(random, dtype, draw.thinned(random, whole), WILD if dtype in FLOATS else TAME)
    return Call(name, (x, y if dtype in FLOATS else np.asarray(y % np.asarray(5, y.dtype))))


def _shift(name: str, random: Random) -> Call:
    whole, dtype = draw.shape(random), draw.dtype(random, INTEGERS)
    x, by = (draw.array(random, dtype, draw.thinned(random, whole), WILD) for _ in range(2))
    return Call(name, (x, np.asarray(by % np.asarray(8 * by.itemsize, by.dtype))))


def _clip(name: str, random: Random) -> Call:
    whole, dtype = draw.shape(random), draw.dtype(random, NUMBERS)
    x = draw.array(random, dtype, whole, WILD)
    low, high = (draw.array(random, dtype, draw.thinned(random, whole), TAME) for _ in range(2))
    return Call(name, (x, low, high))


def _where(name: str, random: Random) -> Call:
    whole = draw.shape(random)
    condition = draw.array(random, "bool", draw.thinned(random, whole))
    x, y = (draw.array(random, draw.dtype(random, ALL), draw.thinned(random, whole)) for _ in range(2))
    return Call(name, (condition, x, y))


def _scaled(name: str, random: Random) -> Call:
    whole = draw.shape(random)
    x = draw.array(random, draw.dtype(random, FLOATS), draw.thinned(random, whole))
    exponents = draw.array(random, draw.dtype(random, ("int8", "int16", "int32")), draw.thinned(random, whole))
    return Call(name, (x, exponents))


KINDS: dict[str, Kind] = {
    **named(elements(1), "abs absolute isfinite isinf isnan logical_not square"),
    **named(elements(1), "ones_like zeros_like iscomplex isreal iscomplexobj isrealobj real_if_close ndim shape size"),
    **named(
        elements(1, NUMBERS),
        "conj conjugate imag real negative positive ceil floor trunc sign nan_to_num fix rint round around",
    ),
    **named(elements(1, FLOATS), "frexp isneginf isposinf modf reciprocal"),
    "spacing": elements(1, ("float32", "float64")),  # of float16 NumPy's has no sign
    "angle": elements(1, NUMBERS),
    "bitwise_count": elements(1, INTEGERS),
    "ldexp": _scaled,
    **named(elements(1, NUMBERS, TAME), "signbit"),
    **named(elements(1, (*INTEGERS, "bool")), "bitwise_invert bitwise_not invert"),
    **named(elements(1, NUMBERS), "acos arccos acosh arccosh asin arcsin asinh arcsinh atan arctan atanh arctanh cbrt"),
    **named(elements(1, NUMBERS), "cosh sinh tanh exp exp2 expm1 fabs log log10 log1p log2 sqrt"),
    "sinc": elements(1, FLOATS, PLAIN),
    **named(elements(1, NUMBERS), "deg2rad degrees rad2deg radians"),
    **named(elements(1, NUMBERS, TAME), "sin cos tan"),
    **named(elements(2), "add multiply maximum minimum equal not_equal less less_equal greater greater_equal"),
    **named(elements(2), "logical_and logical_or logical_xor fmax fmin"),
    **named(elements(2, NUMBERS), "subtract divide true_divide floor_divide remainder mod divmod fmod"),
    **named(alike(2, NUMBERS), "atan2 arctan2 hypot logaddexp logaddexp2 float_power heaviside"),
    **named(alike(2, FLOATS, TAME), "copysign"),
    **named(alike(2, FLOATS), "nextafter"),
    **named(alike(2, (*INTEGERS, "bool")), "bitwise_and bitwise_or bitwise_xor"),
    **named(alike(2, INTEGERS), "gcd lcm"),
    **named(_shift, "bitwise_left_shift left_shift bitwise_right_shift right_shift"),
    **named(_power, "pow power"),
    **named(elements(2, NUMBERS, DISTINCT_ENOUGH), "isclose allclose"),
    **named(alike(2, ALL, DISTINCT_ENOUGH), "isin"),
    **named(elements(2), "array_equal array_equiv broadcast_arrays"),
    "clip": _clip,
    "where": _where,
}
