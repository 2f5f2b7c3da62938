"""Casts arrays on this machine to another dtype, by the rules of `astype` on the server."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_protos import nans

Host = npt.NDArray[Any]

_BLOCK = 1 << 16  # elements that are cast at once


@np.errstate(all="ignore")  # values out of range have a defined result
def cast(values: Host, dtype: np.dtype[Any]) -> Host:
    """`values` as `dtype`; a copy is in C order, and no copy is made if `values` has that dtype.

    The cast is NumPy's with two exceptions. A float that becomes an integer saturates where C leaves the result
    undefined, and NaN becomes 0. In a float that becomes another float every NaN becomes the one computed NaN.
    """
    if is_floating(values.dtype) and dtype.kind in "iu":
        return _saturated(values, dtype)
    converted: Host = values.astype(dtype, order="C", copy=False)
    is_another = values.dtype.type is not dtype.type  # another byte order is not another dtype
    is_another_float = is_another and is_floating(values.dtype) and is_floating(dtype)
    return nans.settle(converted) if is_another_float else converted


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` is a float of NumPy's or bfloat16, whose kind in NumPy is not "f"."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _saturated(values: Host, dtype: np.dtype[Any]) -> Host:
    """Casts block by block, so that temporary arrays stay in the processor's cache."""
    floats = np.ascontiguousarray(values).reshape(-1)
    integers: Host = np.empty(values.shape, dtype)
    filled = integers.reshape(-1)
    for first in range(0, floats.size, _BLOCK):
        filled[first : first + _BLOCK] = _saturated_block(floats[first : first + _BLOCK], dtype)
    return integers


def _saturated_block(values: Host, dtype: np.dtype[Any]) -> Host:
    """Compares with powers of two, which every float dtype wider than a half holds exactly."""
    wide = values.astype(np.float32) if values.dtype.itemsize == 2 else values
    limits = np.iinfo(dtype)
    is_below, is_beyond = wide < float(limits.min), wide >= float(limits.max) + 1
    integers = np.where(is_below | is_beyond | np.isnan(wide), 0, wide).astype(dtype)
    np.copyto(integers, limits.min, where=is_below)
    np.copyto(integers, limits.max, where=is_beyond)
    return integers
