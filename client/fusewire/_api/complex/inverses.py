"""Inverse functions of complex numbers, circular and hyperbolic, as formulas of both parts.

They are W. Kahan's (Branch cuts for complex elementary functions, 1987), as in CPython's module cmath: no step loses
digits by a difference of near numbers. At infinities, NaN and signed zeros the results are those of C (ISO/IEC 9899,
annex G), which the array API standard repeats; the sides of a branch cut are told apart by the sign of a zero.
"""

from __future__ import annotations

import math

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs as size_of
from fusewire._api.catalogue.catalogued import atan2, isinf, isnan, log1p
from fusewire._api.catalogue.catalogued import log as real_log
from fusewire._api.catalogue.catalogued import sqrt as real_sqrt
from fusewire._api.complex.exponentials import sqrt
from fusewire._api.complex.operands import Pair
from fusewire._api.functions.dtypes import finfo
from fusewire._api.functions.elementwise import trigonometry
from fusewire._api.functions.elementwise.arithmetic import hypot
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.functions.elementwise.signs import copysign

_HALF_PI = math.pi / 2


def _is_large(x: Array, y: Array) -> Array:
    """Returns where 1 is nothing beside a number, and a sum or product of its parts might overflow."""
    most = finfo(x.dtype).max / 4
    return (size_of(x) > most) | (size_of(y) > most)


def _log_of_twice(x: Array, y: Array, is_large: Array) -> Array:
    """Returns log(2 |z|) of large numbers, and of others something whose derivative is finite, as no gradient takes."""
    a, b = (where(is_large, 0.5 * each, 1.0) for each in (x, y))
    return real_log(hypot(a, b)) + 2 * math.log(2)


def acos(x: Array, y: Array) -> Pair:
    is_large = _is_large(x, y)
    (p, q), (r, s) = sqrt(1.0 - x, -y), sqrt(1.0 + x, y)
    real = where(is_large, atan2(size_of(y), x), 2.0 * atan2(p, r))
    imag = where(is_large, copysign(_log_of_twice(x, y, is_large), -y), trigonometry.asinh(r * q - s * p))
    return where((x == 0) & isnan(y), _HALF_PI, real), imag


def acosh(x: Array, y: Array) -> Pair:
    is_large = _is_large(x, y)
    (p, q), (r, s) = sqrt(x - 1.0, y), sqrt(x + 1.0, y)
    real = where(is_large, _log_of_twice(x, y, is_large), trigonometry.asinh(p * r + q * s))
    imag = where(is_large, atan2(y, x), 2.0 * atan2(q, r))
    return real, where((x == 0) & isnan(y), _HALF_PI, imag)


def asinh(x: Array, y: Array) -> Pair:
    is_large = _is_large(x, y)
    (p, q), (r, s) = sqrt(1.0 + y, -x), sqrt(1.0 - y, x)
    real = where(is_large, copysign(_log_of_twice(x, y, is_large), x), trigonometry.asinh(p * s - r * q))
    imag = where(is_large, atan2(y, size_of(x)), atan2(y, p * r - q * s))
    return real, where(isnan(x) & (y == 0), y, imag)


def atanh(x: Array, y: Array) -> Pair:
    """Returns what W. Kahan's formula gives for the sizes of both parts, with the signs of the parts."""
    sides = copysign(1.0, x), copysign(1.0, y)  # a product with the sign has the derivative of its side at 0
    a, b = x * sides[0], y * sides[1]
    limits = finfo(x.dtype)
    is_pole = (a == 1) & (b < math.sqrt(limits.smallest_normal))
    is_large = (a > math.sqrt(limits.max / 4)) | (b > math.sqrt(limits.max / 4))
    real, imag = _inside(a, b)
    real = where(is_large, _far_beyond(a, b, is_large), where(is_pole, _beside_pole(b, is_pole), real))
    imag = where(is_pole & (b != 0), 0.5 * atan2(2.0, -b), where(is_large, _HALF_PI, imag))
    is_infinite = isinf(x) | isinf(y)
    real = where(is_infinite | ((x == 0) & isnan(y)), 0.0, real)
    imag = where(isnan(y), y, where(is_infinite, _HALF_PI, where(isnan(x), x, imag)))
    return real * sides[0], imag * sides[1]


def _inside(a: Array, b: Array) -> Pair:
    gap = 1.0 - a
    real = 0.25 * log1p(4.0 * a / (gap * gap + b * b))
    return real, 0.5 * atan2(2.0 * b, gap * (1.0 + a) - b * b)


def _far_beyond(a: Array, b: Array, is_large: Array) -> Array:
    half = where(is_large, hypot(0.5 * a, 0.5 * b), 1.0)
    return a / 4.0 / half / half


def _beside_pole(b: Array, is_pole: Array) -> Array:
    height = where(is_pole, b, 1.0)
    return -real_log(real_sqrt(height) / real_sqrt(hypot(height, 2.0)))


def asin(x: Array, y: Array) -> Pair:
    imag, real = asinh(-y, x)
    return real, -imag


def atan(x: Array, y: Array) -> Pair:
    imag, real = atanh(-y, x)
    return real, -imag
