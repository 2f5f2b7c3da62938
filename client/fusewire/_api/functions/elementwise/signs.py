"""Functions of the sign of a number, and its neighbours."""

from __future__ import annotations

import math
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs, equal, isnan  # noqa: A004  # the standard's name
from fusewire._api.functions.dtypes import finfo
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops.bits import bits_of, of_bits
from fusewire._api.ops.float_operands import in_own_floats
from fusewire._api.ops.operands import asarray

__all__ = [
    "copysign",
    "isneginf",
    "isposinf",
    "nextafter",
    "signbit",
    "spacing",
]


def signbit(x: Any, /) -> Array:
    """Returns whether the sign of `x` is −, as that of −0.0 is. A computed NaN has no sign."""
    given = asarray(x)
    if not given.dtype.is_floating:
        return given < 0
    return bits_of(given) >> (8 * given.itemsize - 1) != 0


def isposinf(x: Any, /) -> Array:
    """Returns whether `x` is ∞."""
    return equal(x, math.inf)


def isneginf(x: Any, /) -> Array:
    """Returns whether `x` is −∞."""
    return equal(x, -math.inf)


@in_own_floats
def copysign(x1: Any, x2: Any, /) -> Array:
    """Returns `x1` with the sign of `x2`, which may be −0.0. A computed NaN counts as positive."""
    size = abs(x1)
    return where(signbit(x2), -size, size)


@in_own_floats
def nextafter(x1: Any, x2: Any, /) -> Array:
    """Returns the next number of the dtype behind `x1`, towards `x2`; `x2` if both are equal.

    fw.nextafter(fw.asarray(1.0), 2.0) - 1  # 2.220446049250313e-16
    """
    is_away_from_zero = (x2 > x1) == (x1 > 0)
    bits = bits_of(x1)
    moved = of_bits(where(is_away_from_zero, bits + 1, bits - 1), x1.dtype)
    from_zero = copysign(finfo(x1.dtype).smallest_subnormal, x2)
    return where(isnan(x1) | isnan(x2), math.nan, where(x1 == x2, x2, where(x1 == 0, from_zero, moved)))


@in_own_floats
def spacing(x: Any, /) -> Array:
    """Returns the distance from `x` to the next number of the dtype away from zero, with the sign of `x`; above 0 at 0.

    fw.spacing(fw.asarray(1.0))  # 2.220446049250313e-16
    """
    beyond = where(x == 0, math.inf, copysign(math.inf, x))
    distance: Array = nextafter(x, beyond) - x
    return distance
