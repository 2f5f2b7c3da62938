"""A value in this machine's memory as one of another dtype, by the rule of `astype` on the server."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_protos import nans

Host = npt.NDArray[Any]

_BLOCK = 1 << 16  # elements that are cast at once


@np.errstate(all="ignore")  # what is out of range has a defined value
def cast(values: Host, dtype: np.dtype[Any]) -> Host:
    """`values` as `dtype`, in C order where that needs a copy.

    As NumPy casts, but for a float that becomes an integer: C leaves what is out of range undefined, here it
    saturates, and NaN becomes 0. Of one that becomes another float NaN is the one NaN.
    """
    if is_floating(values.dtype) and dtype.kind in "iu":
        return _saturated(values, dtype)
    converted: Host = values.astype(dtype, order="C", copy=False)
    is_another = values.dtype.type is not dtype.type  # bytes in another order are no other dtype
    is_another_float = is_another and is_floating(values.dtype) and is_floating(dtype)
    return nans.settle(converted) if is_another_float else converted


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether these are NumPy's floats or bfloat16, which NumPy does not take for one."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _saturated(values: Host, dtype: np.dtype[Any]) -> Host:
    """A block at a time: what it takes beside the result stays in the processor's cache."""
    floats = np.ascontiguousarray(values).reshape(-1)
    integers: Host = np.empty(values.shape, dtype)
    filled = integers.reshape(-1)
    for first in range(0, floats.size, _BLOCK):
        filled[first : first + _BLOCK] = _saturated_block(floats[first : first + _BLOCK], dtype)
    return integers


def _saturated_block(values: Host, dtype: np.dtype[Any]) -> Host:
    """Comparisons are with powers of two, which every float dtype wider than a half holds exactly."""
    wide = values.astype(np.float32) if values.dtype.itemsize == 2 else values
    limits = np.iinfo(dtype)
    is_below, is_beyond = wide < float(limits.min), wide >= float(limits.max) + 1
    integers = np.where(is_below | is_beyond | np.isnan(wide), 0, wide).astype(dtype)
    np.copyto(integers, limits.min, where=is_below)
    np.copyto(integers, limits.max, where=is_beyond)
    return integers
