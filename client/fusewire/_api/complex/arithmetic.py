"""Arithmetic of complex numbers, and questions to their parts.

Products are those of the parts, as in NumPy and without C's corrections for infinities. A quotient is scaled by the
greater part of the divisor (R. L. Smith, Algorithm 116, Communications of the ACM 5, 1962), as NumPy does it, so that
it overflows only if the result is as large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs as size_of
from fusewire._api.catalogue.catalogued import isfinite as is_finite
from fusewire._api.catalogue.catalogued import isinf as is_infinite
from fusewire._api.catalogue.catalogued import isnan as is_nan
from fusewire._api.complex import exponentials
from fusewire._api.complex.operands import Pair, array_pairs_of, chosen_number, complex_array, pairs_of
from fusewire._api.functions.dtypes import result_type
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops import operations
from fusewire._api.ops.filled import filled
from fusewire._recording.record_op import apply
from fusewire_protos.ops.op import Attributes, Op

_MOST_MULTIPLIED = 100  # NumPy multiplies for a whole power below it


def by_part(op: Op, operands: Sequence[Any], _attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records a sum or a difference."""
    (a, b), (c, d) = pairs_of(operands, result_type(*operands))
    return complex_array(apply(op, (a, c)), apply(op, (b, d)))


def multiply(_op: Op, operands: Sequence[Any], _attributes: Attributes, _starts: Sequence[int]) -> Any:
    (a, b), (c, d) = pairs_of(operands, result_type(*operands))
    return complex_array(a * c - b * d, a * d + b * c)


def divide(a: Array, b: Array, c: Array, d: Array) -> Pair:
    is_real_greater = size_of(c) >= size_of(d)
    greater, lesser = where(is_real_greater, c, d), where(is_real_greater, d, c)
    p, q = where(is_real_greater, a, b), where(is_real_greater, b, a)
    ratio = lesser / greater
    scale = 1.0 / (greater + lesser * ratio)
    cross = p * ratio
    is_zero = (c == 0) & (d == 0)
    real = (p + q * ratio) * scale
    imag = where(is_real_greater, q - cross, cross - q) * scale
    zero = where(is_zero, size_of(c), 1.0)  # elsewhere 1, as the gradient goes through both choices
    return where(is_zero, a / zero, real), where(is_zero, b / zero, imag)


def reciprocal(a: Array, b: Array) -> Pair:
    is_real_greater = size_of(a) >= size_of(b)
    greater, lesser = where(is_real_greater, a, b), where(is_real_greater, b, a)
    ratio = lesser / greater
    divisor = greater + lesser * ratio
    whole, part = 1.0 / divisor, ratio / divisor
    return where(is_real_greater, whole, part), -where(is_real_greater, part, whole)


def square(a: Array, b: Array) -> Pair:
    return a * a - b * b, a * b + b * a


def equal(a: Array, b: Array, c: Array, d: Array) -> Array:
    return (a == c) & (b == d)


def not_equal(a: Array, b: Array, c: Array, d: Array) -> Array:
    return (a != c) | (b != d)


def isfinite(a: Array, b: Array) -> Array:
    return is_finite(a) & is_finite(b)


def isinf(a: Array, b: Array) -> Array:
    return is_infinite(a) | is_infinite(b)


def isnan(a: Array, b: Array) -> Array:
    return is_nan(a) | is_nan(b)


def power(_op: Op, operands: Sequence[Any], _attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records products for a whole exponent that is known here, and else exp(w · log z).

    0 to a power of positive real part is 0, and to another one NaN; everything to the power 0 is 1.
    """
    base, exponent = operands
    dtype = result_type(*operands)
    known = _whole(exponent)
    if known is not None:
        ((a, b),) = array_pairs_of([base], dtype)
        return complex_array(*_multiplied(a, b, known))
    if not isinstance(exponent, Array) and complex(exponent) == 0.5:
        ((a, b),) = array_pairs_of([base], dtype)
        return complex_array(*exponentials.sqrt(a, b))
    (a, b), (c, d) = array_pairs_of(operands, dtype)
    return complex_array(*_power(a, b, c, d))


def _whole(exponent: Any) -> int | None:
    """Returns a scalar exponent that is a small whole number, or None."""
    if isinstance(exponent, Array):
        return None
    number = complex(exponent)
    is_whole = number.imag == 0 and number.real.is_integer() and math.fabs(number.real) < _MOST_MULTIPLIED
    return int(number.real) if is_whole else None


def _multiplied(a: Array, b: Array, exponent: int) -> Pair:
    """Returns a whole power, by squares, as NumPy computes it."""
    one, zero = (filled(a.session, (), each, a.dtype) for each in (1.0, 0.0))
    if exponent == 0:
        return operations.broadcast_to(one, a.shape), operations.broadcast_to(zero, a.shape)
    if exponent < 0:
        return reciprocal(*_multiplied(a, b, -exponent))
    result: Pair | None = None
    factor, left = (a, b), exponent
    while left:
        if left & 1:
            result = factor if result is None else _product(*result, *factor)
        left >>= 1
        if left:
            factor = square(*factor)
    assert result is not None
    real, imag = result
    return (real.copy(), imag.copy()) if exponent == 1 else (real, imag)


def _product(a: Any, b: Any, c: Any, d: Any) -> Pair:
    return a * c - b * d, a * d + b * c


def _power(a: Array, b: Array, c: Array, d: Array) -> Pair:
    size, angle = exponentials.log(a, b)
    real, imag = exponentials.exp(*_product(c, d, size, angle))
    is_one = (c == 0) & (d == 0)
    is_zero = (a == 0) & (b == 0)
    of_zero = chosen_number(c > 0, 0.0, math.nan, c)
    return where(is_one, 1.0, where(is_zero, of_zero, real)), where(is_one, 0.0, where(is_zero, of_zero, imag))
