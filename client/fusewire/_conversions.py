"""Casts arrays on this machine to another dtype, by the rules of `astype` on the server."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_protos.ops import nans

Host = npt.NDArray[Any]

_BLOCK = 1 << 16  # elements that are cast at once


@np.errstate(all="ignore")  # values out of range have a defined result
def cast(values: Host, dtype: np.dtype[Any]) -> Host:
    """Returns `values` as an array of `dtype` in C order. Copies only if dtype, byte order or memory order differs.

    The cast is NumPy's with two exceptions. If a float is cast to an integer dtype and is out of its range, the result
    is the nearest integer in the range, and NaN becomes 0; C leaves these results undefined. If floats are cast to
    another float dtype, every NaN becomes the NaN of `fusewire_protos.ops.nans`.
    """
    if is_floating(values.dtype) and dtype.kind in "iu":
        return _saturated(values, dtype)
    converted: Host = values.astype(dtype, order="C", copy=False)
    is_another = values.dtype.type is not dtype.type  # another byte order is not another dtype
    is_another_float = is_another and is_floating(values.dtype) and is_floating(dtype)
    return nans.settle(converted) if is_another_float else converted


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` is one of NumPy's floats, or bfloat16. NumPy's `kind` of bfloat16 is not "f"."""
    return dtype.kind == "f" or (dtype.kind == "V" and dtype.name == "bfloat16")  # NumPy takes a µs for a name


def _saturated(values: Host, dtype: np.dtype[Any]) -> Host:
    """Casts floats to integers, block by block, so that temporary arrays stay in the processor's cache."""
    floats = np.ascontiguousarray(values).reshape(-1)
    integers: Host = np.empty(values.shape, dtype)
    filled = integers.reshape(-1)
    for first in range(0, floats.size, _BLOCK):
        filled[first : first + _BLOCK] = _saturated_block(floats[first : first + _BLOCK], dtype)
    return integers


def _saturated_block(values: Host, dtype: np.dtype[Any]) -> Host:
    """Casts one block. The limits compared with are 0 or powers of two, which float32 and float64 hold exactly."""
    wide = values.astype(np.float32) if values.dtype.itemsize == 2 else values
    limits = np.iinfo(dtype)
    is_below, is_beyond = wide < float(limits.min), wide >= float(limits.max) + 1
    integers = np.where(is_below | is_beyond | np.isnan(wide), 0, wide).astype(dtype)
    np.copyto(integers, limits.min, where=is_below)
    np.copyto(integers, limits.max, where=is_beyond)
    return integers
