"""Finds the NVIDIA GPUs that this process may use, without CuPy and without using one."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

VISIBLE = "CUDA_VISIBLE_DEVICES"  # names the GPUs that a process uses
_LIBRARY = "libcuda.so.1"


def visible_gpus(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Returns for each GPU what `CUDA_VISIBLE_DEVICES` names it, in the order of their numbers."""
    count = _count()
    named = [name.strip() for name in environment.get(VISIBLE, "").split(",") if name.strip()]
    return tuple(named[:count] if named else map(str, range(count)))


def _count() -> int:
    """Returns how many GPUs the driver shows to this process."""
    try:
        driver = ctypes.CDLL(_LIBRARY)
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value
