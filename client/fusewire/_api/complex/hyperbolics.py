"""Sine, cosine and tangent of complex numbers, circular and hyperbolic, as formulas of both parts.

The circular functions are the hyperbolic ones turned by a quarter: sin z = −i sinh iz. At infinities, NaN and signed
zeros the results are those of C (ISO/IEC 9899, annex G), which the array API standard repeats.
"""

from __future__ import annotations

import math

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs as size_of
from fusewire._api.catalogue.catalogued import cos as real_cos
from fusewire._api.catalogue.catalogued import exp as real_exp
from fusewire._api.catalogue.catalogued import isfinite, isinf, isnan
from fusewire._api.catalogue.catalogued import sin as real_sin
from fusewire._api.catalogue.catalogued import tan as real_tan
from fusewire._api.catalogue.catalogued import tanh as real_tanh
from fusewire._api.complex.exponentials import scaled_exp, zero_kept
from fusewire._api.complex.operands import Pair
from fusewire._api.functions.elementwise import trigonometry
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.functions.elementwise.signs import copysign

_FLAT = 20.0  # beyond, `tanh` is ±1 in every dtype, and its distance to 1 is 2 exp(−2x)


def _grown(x: Array) -> tuple[Array, Array, Array]:
    """Returns cosh(x) and sinh(x) but for a factor, which is 1 unless they overflow, and the factor."""
    size = size_of(x)
    half, factor = scaled_exp(size)
    is_large = factor > 1
    cosh, sinh = (where(is_large, 0.5 * half, each) for each in (trigonometry.cosh(x), trigonometry.sinh(size)))
    return cosh, where(x == 0, x, where(x < 0, -sinh, sinh)), factor


def sinh(x: Array, y: Array) -> Pair:
    even, odd, factor = _grown(x)
    real, imag = odd * real_cos(y) * factor, even * real_sin(y) * factor
    is_lost = ~isfinite(y) & ((x == 0) | isinf(x))
    return where(is_lost, x, real), zero_kept(y, imag)


def cosh(x: Array, y: Array) -> Pair:
    even, odd, factor = _grown(x)
    real, imag = even * real_cos(y) * factor, odd * real_sin(y) * factor
    real = where(~isfinite(y) & isinf(x), math.inf, real)
    has_zero = (x == 0) | (y == 0)
    return real, where(has_zero & isnan(imag), copysign(0.0, x) * copysign(1.0, y), imag)


def tanh(x: Array, y: Array) -> Pair:
    """Returns what W. Kahan's formula gives, which takes tan(y) and cosh(x) alone."""
    is_flat = (size_of(x) > _FLAT) & (isfinite(y) | isinf(x))
    near = where(is_flat, 0.0, x)
    of_x, of_y = real_tanh(near), real_tan(y)
    shrink = 1.0 / trigonometry.cosh(near)
    product = of_x * of_y
    divisor = 1.0 + product * product
    real = where(is_flat, copysign(1.0, x), of_x * (1.0 + of_y * of_y) / divisor)
    far = 4.0 * real_sin(y) * real_cos(y) * real_exp(-2.0 * size_of(x))
    imag = where(is_flat, far, of_y / divisor * shrink * shrink)
    real = where((x == 0) & ~isfinite(y), x, where(isnan(x), x, real))
    imag = where(isinf(x), copysign(0.0, y), where(isnan(x), x, imag))  # NumPy's zero has the sign of sin 2y
    return real, zero_kept(y, imag)


def sin(x: Array, y: Array) -> Pair:
    imag, real = sinh(y, x)
    return real, imag


def cos(x: Array, y: Array) -> Pair:
    return cosh(y, -x)


def tan(x: Array, y: Array) -> Pair:
    imag, real = tanh(y, x)
    return real, imag
