"""Runs plans on the CPU in slices of time.

A slice is one call of a C function. The function runs launches of the plan, reads the clock after each launch, and
returns once the slice has lasted long enough. So a slice is at least as long as a launch.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fusewire_protos.errors import OutOfMemory


class CpuLaunches(Protocol):
    """The launches of a plan in the layout of runtime.c."""

    @property
    def launches_address(self) -> int: ...

    @property
    def launch_count(self) -> int: ...


class CpuPlanInSlices:
    """Implements `PlanInSlices`. `run_slice` is the function `fw_run_slice` of runtime.c."""

    def __init__(self, run_slice: Callable[..., int], loaded: CpuLaunches, slots: npt.NDArray[np.int64]) -> None:
        self._run_slice = run_slice
        self._loaded = loaded  # keeps the kernels loaded while the plan runs
        self._slots = slots
        self._slots_address = address_of(slots)
        self._next_launch = 0

    def go_on(self, most_ns: int) -> bool:
        loaded = self._loaded
        self._next_launch = self._run_slice(
            loaded.launches_address, self._next_launch, loaded.launch_count, self._slots_address, most_ns
        )
        return self._next_launch == loaded.launch_count


class CpuSlices:
    """Implements `PlansInSlices`. `arena` is memory that only plans in slices use."""

    def __init__(self, run_slice: Callable[..., int], arena: mmap.mmap) -> None:
        self._run_slice = run_slice
        self._arena = arena
        self._arena_address = address_of(arena)

    def arena_address(self, arena_bytes: int) -> int:
        if arena_bytes > len(self._arena):
            raise too_large(arena_bytes, len(self._arena))
        return self._arena_address

    def begin(self, loaded: CpuLaunches, slots: npt.NDArray[np.int64]) -> CpuPlanInSlices:
        return CpuPlanInSlices(self._run_slice, loaded, slots)


def too_large(arena_bytes: int, limit_bytes: int) -> OutOfMemory:
    """Returns the error for a plan that needs an arena larger than the memory reserved for arenas."""
    return OutOfMemory(f"a plan needs an arena of {arena_bytes} bytes; device.arena_bytes = {limit_bytes}")


def address_of(memory: Any) -> int:
    """Returns the address of a buffer.

    Raises TypeError or ValueError if the buffer is read-only, not dense or empty.
    """
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
