"""Converts values from one dtype to another, in NumPy or a library with its interface.

Defined results: integers wrap; a float becomes an integer by truncation, saturating, and NaN becomes 0; every value but
zero becomes True, NaN too. A conversion to a float gives the nearest value, ties to even, rounded once. As in NumPy's
arrays, three conversions round to float32 first: integers and float64 to bfloat16, integers to float16. The bits of a
converted NaN are open for arrays; a NaN scalar becomes the NaN that computed values have.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType


@np.errstate(all="ignore")
def cast(library: Any, array: Any, source: DType, target: DType) -> Any:
    """`array` of dtype `source` converted to dtype `target`; the array itself if the two are the same."""
    if source is target:
        return array
    values = widen(library, array, source)
    if target.is_boolean:
        return library.asarray(values != 0)
    if source.is_floating and target.is_integer:
        return _saturate(library, values, target)
    if source is dtypes.float64 and target is dtypes.float16:
        return narrow(library, _round_to_odd(library, values), target)
    if target.is_half:
        return narrow(library, values.astype("float32"), target)
    return values.astype(target.name)


def scalar(library: Any, value: int | float, dtype: DType) -> Any:
    """A scalar of a row (bool, int or float) as an array of rank 0, converted as `cast` converts arrays."""
    # NumPy converts, because CuPy flushes denormals. A vector is moved, because CuPy turns −0.0 of rank 0 into 0.
    return library.asarray(_scalar(value, dtype).reshape(1)).reshape(())


def rounded(value: int | float, dtype: DType) -> int | float:
    """The number that a scalar becomes by conversion to `dtype`."""
    number: int | float = widen(np, scalar(np, value, dtype), dtype).item()
    return number


def _scalar(value: int | float, dtype: DType) -> Any:
    if isinstance(value, int) and not dtype.is_floating:
        return cast(np, np.asarray(_wrapped(value), dtype="int64"), dtypes.int64, dtype)
    number = math.nan if math.isnan(value) else float(value)
    return cast(np, np.asarray(number, dtype="float64"), dtypes.float64, dtype)


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


@np.errstate(all="ignore")
def widen(library: Any, array: Any, dtype: DType) -> Any:
    """Halves converted to float32, which is exact; an array of any other dtype unchanged."""
    if dtype is dtypes.bfloat16:
        bits = library.asarray(array.view("uint16")).astype("uint32")
        return library.asarray(bits << 16).view("float32")
    return array.astype("float32") if dtype.is_half else array


@np.errstate(all="ignore")
def narrow(library: Any, array: Any, dtype: DType) -> Any:
    """A float32 array rounded to the half `dtype`; for any other `dtype` the array unchanged."""
    if dtype is not dtypes.bfloat16:
        return array.astype("float16") if dtype.is_half else array
    bits = library.asarray(array).view("uint32")
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    halves = library.asarray(library.where(library.isnan(array), 0x7FC0, rounded)).astype("uint16")
    return halves.view(dtypes.to_numpy(dtype))


def _saturate(library: Any, values: Any, target: DType) -> Any:
    """Floats as integers, saturating. The bounds compared with are powers of two, exact in every float dtype."""
    bits = 8 * target.itemsize_bytes
    least, beyond = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if target.is_signed else (0.0, 2.0**bits)
    is_inside = (values >= least) & (values < beyond)
    inside = library.asarray(library.where(is_inside, values, 0)).astype(target.name)
    raised = library.where(values >= beyond, int(beyond) - 1, inside)
    return library.asarray(library.where(values < least, int(least), raised)).astype(target.name)


def _round_to_odd(library: Any, values: Any) -> Any:
    """float64 truncated to float32, with the last bit set where bits were lost.

    Rounding such a value to float16 gives the same result as rounding the float64 once.
    """
    nearest = values.astype("float32")
    back = nearest.astype("float64")
    bits = nearest.view("uint32") - (library.abs(back) > library.abs(values)).astype("uint32")
    was_lost = (back != values) & ~library.isnan(values)
    return library.asarray(bits | was_lost.astype("uint32")).view("float32")
