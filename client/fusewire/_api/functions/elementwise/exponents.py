"""Floats as multiples of powers of two."""

from __future__ import annotations

from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs, isfinite  # noqa: A004  # the standard's name
from fusewire._api.functions.elementwise.choices import clip, where
from fusewire._api.ops.bits import bits_of, of_bits
from fusewire._api.ops.operands import arrays_of, asarray
from fusewire._api.ops.operations import astype
from fusewire._errors import DtypeError
from fusewire_protos.ops import dtypes

__all__ = ["frexp", "ldexp"]

# A float64 has the bits of its exponent, from 1 to 2046 and by `_BIAS` too great, above `_FRACTION_BITS` others.
_FRACTION_BITS, _BIAS, _EXPONENT_BITS = 52, 1023, 0x7FF
# A product by two powers of two in these exponents, the less extreme first, is rounded once.
_LEAST, _MOST = 1 - _BIAS, _BIAS
_SMALLEST_TIMES = 2200  # which makes 0 or ∞ of each float64
_MANY = 54  # a power of two by which the least float64 becomes one with an exponent


def frexp(x: Any, /) -> tuple[Array, Array]:
    """Returns mantissas, of a size from 0.5 to below 1, and int32 exponents of two: `x` is mantissa · 2^exponent.

    Of 0, ∞ and NaN the mantissa is `x`, and the exponent 0.
    """
    given = asarray(x)
    dtype = dtypes.to_floating(given.dtype)
    wide = astype(given, dtypes.float64)
    is_small = abs(wide) < 2.0**_LEAST
    bits = bits_of(where(is_small, wide * 2.0**_MANY, wide))
    biased = (bits >> _FRACTION_BITS) & _EXPONENT_BITS
    has_exponent = isfinite(wide) & (wide != 0)
    below_one = of_bits(bits + ((_BIAS - 1 - biased) << _FRACTION_BITS), dtypes.float64)
    exponents = astype(biased, dtypes.int32) - (_BIAS - 1) - where(is_small, _MANY, 0)
    return astype(where(has_exponent, below_one, wide), dtype), astype(where(has_exponent, exponents, 0), dtypes.int32)


def ldexp(x1: Any, x2: Any, /) -> Array:
    """Returns `x1` · 2^`x2`, rounded once, in the float dtype that `x1` has or becomes. Raises DtypeError unless `x2`
    are integers.
    """
    given, exponents = arrays_of(x1, x2)
    if exponents.dtype.is_floating:
        raise DtypeError(f"ldexp takes integers as exponents, not {exponents.dtype.name}")
    dtype = dtypes.to_floating(given.dtype)
    left = clip(astype(exponents, dtypes.int64), -_SMALLEST_TIMES, _SMALLEST_TIMES)
    factors = []
    for _ in range(3):
        step = clip(left, _LEAST, _MOST)
        factors.append(_power_of_two(step))
        left = left - step
    product = astype(given, dtypes.float64)
    for factor in factors[::-1]:
        product = product * factor
    return astype(product, dtype, copy=False)


def _power_of_two(exponent: Array) -> Array:
    """Returns float64 powers with integral exponents from `_LEAST` to `_MOST`."""
    return of_bits(astype(exponent + _BIAS, dtypes.uint64) << _FRACTION_BITS, dtypes.float64)
