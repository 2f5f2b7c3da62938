"""Functions of the sign of a number, and its neighbours."""

from __future__ import annotations

import math
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs, equal, isinf, isnan  # noqa: A004  # the standard's name
from fusewire._api.functions.dtypes import finfo
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops.float_operands import in_own_floats
from fusewire._api.ops.operands import asarray

__all__ = [
    "copysign",
    "isneginf",
    "isposinf",
    "nextafter",
    "signbit",
]


def signbit(x: Any, /) -> Array:
    """Returns whether `x` is negative; true of −0.0, and false of every NaN, because a computed NaN has no sign."""
    given = asarray(x)
    if not given.dtype.is_floating:
        return given < 0
    return (given < 0) | ((given == 0) & (1 / given < 0))


def isposinf(x: Any, /) -> Array:
    """Returns whether `x` is ∞."""
    return equal(x, math.inf)


def isneginf(x: Any, /) -> Array:
    """Returns whether `x` is −∞."""
    return equal(x, -math.inf)


@in_own_floats
def copysign(x1: Any, x2: Any, /) -> Array:
    """Returns `x1` with the sign of `x2`, which may be −0.0. A NaN in `x2` counts as positive."""
    size = abs(x1)
    return where(signbit(x2), -size, size)


@in_own_floats
def nextafter(x1: Any, x2: Any, /) -> Array:
    """Returns the next number of the dtype behind `x1`, towards `x2`; `x2` if both are equal.

    fw.nextafter(fw.asarray(1.0), 2.0) - 1  # 2.220446049250313e-16
    """
    is_up = x2 > x1
    above = _next_above(where(is_up, x1, -x1))
    moved = where(is_up, above, -above)
    return where(isnan(x1) | isnan(x2), math.nan, where(x1 == x2, x2, moved))


def _next_above(x: Array) -> Array:
    """Returns the next greater number, by Rump's sums rounded to nearest.

    Away from 0, x plus a little more than half of its last place is rounded up to the next number. Near 0 that is
    computed from a multiple of x, and among the least numbers all distances are the same.
    """
    limits = finfo(x.dtype)
    unit, least = 0.5 * limits.eps, limits.smallest_subnormal
    part = unit * (1 + 2 * unit)
    size, multiple = abs(x), x / unit
    middle = (multiple + part * abs(multiple)) * unit
    beyond_least = where(size < 0.5 * least / unit / unit, middle, x + part * size)
    above = where(size < least / unit, x + least, beyond_least)
    from_infinity = where(x < 0, limits.min, x)  # above −∞ is the least finite number
    return where(isinf(x), from_infinity, where(above == 0, -0.0, above))
