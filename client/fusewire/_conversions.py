"""A value in this machine's memory as one of another dtype, by the rule of `astype` on the server."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Host = npt.NDArray[Any]


@np.errstate(all="ignore")  # what is out of range has a defined value
def cast(values: Host, dtype: np.dtype[Any]) -> Host:
    """`values` as `dtype`, in C order where that needs a copy.

    As NumPy casts, but for a float that becomes an integer: C leaves what is out of range undefined, here it
    saturates, and NaN becomes 0.
    """
    if is_floating(values.dtype) and dtype.kind in "iu":
        return _saturated(values, dtype)
    return values.astype(dtype, order="C", copy=False)


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether these are NumPy's floats or bfloat16, which NumPy does not take for one."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _saturated(values: Host, dtype: np.dtype[Any]) -> Host:
    """Comparisons are with powers of two, which every float dtype wider than a half holds exactly."""
    wide = values.astype(np.float32) if values.dtype.itemsize == 2 else values
    limits = np.iinfo(dtype)
    is_below, is_beyond = wide < float(limits.min), wide >= float(limits.max) + 1
    integers = np.where(is_below | is_beyond | np.isnan(wide), 0, wide).astype(dtype, order="C", copy=False)
    np.copyto(integers, limits.min, where=is_below)
    np.copyto(integers, limits.max, where=is_beyond)
    return integers
