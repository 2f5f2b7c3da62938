"""Multiples of floats by powers of two."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.functions.elementwise.choices import clip
from fusewire._api.ops.operands import array_beside, arrays_of
from fusewire._api.ops.operations import astype
from fusewire._errors import DtypeError
from fusewire_protos.ops import dtypes

__all__ = ["ldexp"]

# A product by two powers of two in these exponents, the less extreme first, is rounded once.
_LEAST, _MOST = -1022, 1023
_SMALLEST_TIMES = 2200  # which makes 0 or ∞ of each float64


def ldexp(x1: Any, x2: Any, /) -> Array:
    """Returns `x1` · 2^`x2`, rounded once, in the float dtype that `x1` has or becomes. Raises DtypeError unless `x2`
    are integers.
    """
    given, exponents = arrays_of(x1, x2)
    if exponents.dtype.is_floating:
        raise DtypeError(f"ldexp takes integers as exponents, not {exponents.dtype.name}")
    dtype = dtypes.to_floating(given.dtype)
    left = clip(astype(exponents, dtypes.int64), -_SMALLEST_TIMES, _SMALLEST_TIMES)
    powers = array_beside(np.ldexp(1.0, np.arange(_LEAST, _MOST + 1)), given)
    factors = []
    for _ in range(3):
        step = clip(left, _LEAST, _MOST)
        factors.append(powers.take(step - _LEAST))
        left = left - step
    product = astype(given, dtypes.float64)
    for factor in factors[::-1]:
        product = product * factor
    return astype(product, dtype, copy=False)
