"""Runs plans on the CPU in slices of time.

A slice is one call of a C function. The function runs pieces of the plan's launches, reads the clock after each piece,
and returns once the slice has lasted long enough.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fusewire_kernels.plan.plan import Launch
from fusewire_protos.errors import OutOfMemory


class InPieces(Protocol):
    """The launches of a plan in the layout of runtime.c, and the division of each launch into pieces."""

    @property
    def launches_address(self) -> int: ...

    @property
    def launch_count(self) -> int: ...

    @property
    def divisions(self) -> Divisions: ...


class CpuPlanInSlices:
    """Implements `PlanInSlices`. `run_slice` is the function `fw_run_slice` of runtime.c."""

    def __init__(self, run_slice: Callable[..., None], loaded: InPieces, slots: npt.NDArray[np.int64]) -> None:
        self._run_slice = run_slice
        self._loaded = loaded  # keeps the kernels loaded while the plan runs
        self._slots = slots
        self._slots_address = address_of(slots)
        # The layout is fw_position: the next launch, the next instance of the launch, the next step of the instance.
        self._position = np.zeros(3, np.int64)
        self._sizes = np.zeros(loaded.divisions.most_sizes, np.int64)  # the sizes of a piece
        self._operands = np.zeros(2 * loaded.divisions.most_operands, np.int64)  # two integers for each operand
        self._piece = np.array([self._sizes.ctypes.data, self._operands.ctypes.data], np.int64)  # layout: fw_piece
        self._addresses = address_of(self._position), address_of(self._piece)

    def go_on(self, most_ns: int) -> bool:
        loaded = self._loaded
        self._run_slice(
            loaded.launches_address,
            loaded.divisions.address,
            loaded.launch_count,
            self._slots_address,
            *self._addresses,
            most_ns,
        )
        return bool(self._position[0] == loaded.launch_count)


class Divisions:
    """The division of a plan's launches into pieces, in the layout of runtime.c."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._moves_bytes: list[npt.NDArray[np.int64]] = []
        self.table = np.zeros((max(len(launches), 1), 4), np.int64)  # one fw_division for each launch
        self.most_sizes = self.most_operands = 0
        for number, launch in enumerate(launches):
            division = launch.division
            if division is not None:
                moves_bytes = np.array(division.moves_bytes, np.int64)
                self._moves_bytes.append(moves_bytes)
                sizes = len(launch.sizes)
                self.table[number] = moves_bytes.ctypes.data, division.dimension, division.steps, sizes
                self.most_sizes = max(self.most_sizes, sizes)
                self.most_operands = max(self.most_operands, len(moves_bytes))
        self.address = address_of(self.table)


class CpuSlices:
    """Implements `PlansInSlices`. `arena` is memory that only plans in slices use."""

    def __init__(self, run_slice: Callable[..., None], arena: mmap.mmap) -> None:
        self._run_slice = run_slice
        self._arena = arena
        self._arena_address = address_of(arena)

    def arena_address(self, arena_bytes: int) -> int:
        if arena_bytes > len(self._arena):
            raise too_large(arena_bytes, len(self._arena))
        return self._arena_address

    def begin(self, loaded: InPieces, slots: npt.NDArray[np.int64]) -> CpuPlanInSlices:
        return CpuPlanInSlices(self._run_slice, loaded, slots)


def too_large(arena_bytes: int, limit_bytes: int) -> OutOfMemory:
    """Returns the error for a plan that needs an arena larger than the memory reserved for arenas."""
    return OutOfMemory(f"a plan needs an arena of {arena_bytes} bytes; device.arena_bytes = {limit_bytes}")


def address_of(memory: Any) -> int:
    """Returns the address of a buffer.

    Raises TypeError or ValueError if the buffer is read-only, not dense or empty.
    """
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
