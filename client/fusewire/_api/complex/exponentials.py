"""The size of complex numbers, their square root, exponential and logarithms, as formulas of both parts.

At infinities, NaN and signed zeros the results are those of C (ISO/IEC 9899, annex G), which the array API standard
repeats. The square root and the logarithm follow W. Kahan (Branch cuts for complex elementary functions, 1987): they
scale what would overflow or vanish.
"""

from __future__ import annotations

import math

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs as size_of
from fusewire._api.catalogue.catalogued import atan2, cos, isfinite, isinf, isnan, maximum, sin
from fusewire._api.catalogue.catalogued import exp as real_exp
from fusewire._api.catalogue.catalogued import expm1 as real_expm1
from fusewire._api.catalogue.catalogued import log as real_log
from fusewire._api.catalogue.catalogued import log1p as real_log1p
from fusewire._api.catalogue.catalogued import sqrt as real_sqrt
from fusewire._api.complex.operands import Pair, chosen_number
from fusewire._api.functions.dtypes import finfo
from fusewire._api.functions.elementwise.arithmetic import hypot
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.functions.elementwise.signs import copysign

_MARGIN = 10.0  # by how much `exp` of a large number is taken smaller, and multiplied later
_NEAR_ONE = (0.71, 1.73)  # sizes whose logarithm is computed from their distance to 1, as CPython does


def size(x: Array, y: Array) -> Array:
    return hypot(x, y)


def sign(x: Array, y: Array) -> Pair:
    """Returns z / |z|, and 0 for 0. As in NumPy, that of one infinite part is its direction, and of two is NaN."""
    length = hypot(x, y)
    divisor = where(length == 0, 1.0, length)
    is_one_infinite, is_infinite = isinf(x) ^ isinf(y), isinf(x) | isinf(y)
    found = []
    for part in (x, y):
        direction = where(isinf(part), copysign(1.0, part), 0.0)
        at_infinity = where(is_one_infinite, direction, math.nan)
        elsewhere = where(length == 0, 0.0, where(isnan(length), math.nan, part / divisor))
        found.append(where(is_infinite, at_infinity, elsewhere))
    return found[0], found[1]


def scaled_exp(x: Array) -> tuple[Array, Array]:
    """Returns two factors of exp(x). A factor between −1 and 1 beside them may keep the product from overflowing."""
    is_large = x > math.floor(math.log(finfo(x.dtype).max))
    return real_exp(where(is_large, x - _MARGIN, x)), chosen_number(is_large, math.exp(_MARGIN), 1.0, x)


def exp(x: Array, y: Array) -> Pair:
    grown, factor = scaled_exp(x)
    real, imag = grown * cos(y) * factor, grown * sin(y) * factor
    is_lost = ~isfinite(y) & isinf(x)  # the direction of what is 0 or infinite
    real = where(is_lost, where(x < 0, 0.0, x), real)
    imag = where(is_lost, chosen_number(x < 0, 0.0, math.nan, x), imag)
    return real, zero_kept(y, imag)


def zero_kept(zero: Array, part: Array) -> Array:
    """Returns a part that is 0 where `zero` is, also where it would be NaN. Elsewhere gradients go through the part."""
    return where((zero == 0) & isnan(part), zero, part)


def expm1(x: Array, y: Array) -> Pair:
    _, imag = exp(x, y)
    half = sin(0.5 * y)
    real = real_expm1(x) * cos(y) - 2.0 * half * half + 0.0  # the standard has 0 at −0, and NumPy −0
    is_lost = ~isfinite(y) & isinf(x)
    return where(x == -math.inf, -1.0, where(is_lost, x, real)), imag


def sqrt(x: Array, y: Array) -> Pair:
    limits = finfo(x.dtype)
    is_left, side = x < 0, copysign(1.0, y)  # a product with the sign has the derivative of its side at 0, unlike `abs`
    a, b = where(is_left, -x, x), y * side
    greatest = maximum(a, b)
    is_large, is_small = greatest > limits.max / 8, greatest < limits.smallest_normal * 4
    lift = 2.0 ** (2 * (limits.bits // 4))  # a power of 4, which brings the least numbers among the normal ones
    scale = where(is_large, 0.0625, chosen_number(is_small, lift, 1.0, x))
    back = where(is_large, 4.0, chosen_number(is_small, 1.0 / math.sqrt(lift), 1.0, x))
    a, b = a * scale, b * scale
    root = real_sqrt(0.5 * (a + hypot(a, b)))
    other = 0.5 * b / where(root == 0, 1.0, root)
    greater, lesser = root * back, other * back
    real, imag = where(is_left, lesser, greater), where(is_left, greater, lesser)
    real = where(isinf(y), math.inf, where(isnan(x), x, where(isinf(x) & ~isnan(y), where(is_left, 0.0, x), real)))
    real = where((x == math.inf) & isnan(y), x, real)
    imag = where(isinf(y) | (x == -math.inf), math.inf, where(isinf(x) & ~isnan(y), 0.0, where(isnan(y), y, imag)))
    return real, imag * side


def log(x: Array, y: Array) -> Pair:
    return _log_of_size(x, y), atan2(y, x)


def _log_of_size(x: Array, y: Array) -> Array:
    limits = finfo(x.dtype)
    a, b = size_of(x), size_of(y)
    greater, lesser = where(a > b, a, b), where(a > b, b, a)
    shift = 2.0 ** (limits.bits // 2 + 24)
    is_large, is_small = greater > limits.max / 4, greater < limits.smallest_normal * shift
    scale = where(is_large, 0.25, chosen_number(is_small, shift, 1.0, x))
    moved = where(is_large, 2 * math.log(2), chosen_number(is_small, -math.log(shift), 0.0, x))
    length = hypot(x * scale, y * scale)
    near_one = 0.5 * real_log1p((greater - 1) * (greater + 1) + lesser * lesser)
    is_near_one = (length > _NEAR_ONE[0]) & (length < _NEAR_ONE[1]) & (scale == 1)
    return where(is_near_one, near_one, real_log(length) + moved)


def log1p(x: Array, y: Array) -> Pair:
    real, imag = log(1 + x, y)
    is_small = (size_of(x) < 0.5) & (size_of(y) < 0.5)
    return where(is_small, 0.5 * real_log1p(x * (2 + x) + y * y), real), imag


def log2(x: Array, y: Array) -> Pair:
    real, imag = log(x, y)
    return real * (1 / math.log(2)), imag * (1 / math.log(2))


def log10(x: Array, y: Array) -> Pair:
    real, imag = log(x, y)
    return real * (1 / math.log(10)), imag * (1 / math.log(10))
