"""Functions of the sign of a number, its neighbours, and its parts if it were complex."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs, equal, isinf, isnan  # noqa: A004  # the standard's name
from fusewire._api.functions.creation.creation import full_like, zeros_like
from fusewire._api.functions.dtypes import finfo
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops.float_operands import in_own_floats
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.operations import astype
from fusewire._errors import DtypeError
from fusewire_protos.ops import dtypes

__all__ = [
    "angle",
    "conj",
    "copysign",
    "imag",
    "iscomplex",
    "iscomplexobj",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "nextafter",
    "real",
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


def conj(x: Any, /) -> Array:
    """Returns a copy of `x`: a real number is its own conjugate. Raises DtypeError for booleans."""
    return real(x)


def real(x: Any, /) -> Array:
    """Returns a copy of `x`: there are no complex dtypes. Raises DtypeError for booleans."""
    return _number(x).copy()


def imag(x: Any, /) -> Array:
    """Returns zeros: there are no complex dtypes. Raises DtypeError for booleans."""
    return zeros_like(_number(x))


def angle(x: Any, /, deg: bool = False) -> Array:  # noqa: FBT001, FBT002  # as NumPy calls it
    """Returns the angle of `x` in the complex plane: 0, or π of a negative number. With `deg` in degrees."""
    given = asarray(x)
    wide = astype(given, dtypes.to_floating(given.dtype), copy=False)
    return where(isnan(wide), wide, astype(signbit(wide), wide.dtype) * (180.0 if deg else math.pi))


def isreal(x: Any, /) -> Array:
    """Returns true for each element: there are no complex dtypes."""
    return full_like(x, True, dtypes.bool_)


def iscomplex(x: Any, /) -> Array:
    """Returns false for each element: there are no complex dtypes."""
    return zeros_like(x, dtypes.bool_)


def isrealobj(x: Any, /) -> bool:
    """Returns whether the dtype of `x` is not complex: always of an array on the server."""
    return isinstance(x, Array) or np.isrealobj(x)


def iscomplexobj(x: Any, /) -> bool:
    """Returns whether the dtype of `x` is complex: never of an array on the server."""
    return not isrealobj(x)


def _number(x: Any) -> Array:
    given = asarray(x)
    if given.dtype.is_boolean:
        raise DtypeError("a boolean has no complex parts; cast with astype first")
    return given
