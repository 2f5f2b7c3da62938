"""Defines the one interface that every device implements.

A device works in the order in which it is told (one lane). Memory that is released may be handed out again at once,
because work that is told later runs later. One thread calls the methods, the device thread, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fusewire_kernels.plan.plan import Plan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.shapes import Spec


class DeviceInfo(NamedTuple):
    """The description of a device, for people and for the planner.

    `dialect` is the generator's ("c", "cuda"), or None if nothing is compiled for the device. `is_library_exact`:
    whether the array library's arithmetic is IEEE 754 to the last bit. `is_host`: whether the device is this processor,
    so that any thread may use it, though one at a time.
    """

    backend: str
    name: str
    dialect: str | None
    architecture: str
    memory_bytes: int
    detail: str
    is_library_exact: bool = True
    is_host: bool = False


@dataclass(frozen=True, eq=False)
class Block:
    """Device memory of at least `size_bytes`, 64-byte aligned. `owner` is the device's object that frees the memory."""

    address: int
    size_bytes: int
    owner: Any


@dataclass(frozen=True, eq=False)
class Staged:
    """Host memory to gather a value in. `memory` is writable and uninitialised; `owner` is the device's own object."""

    memory: memoryview
    owner: Any


class Fence(Protocol):
    """A point in the device's order of work."""

    def is_reached(self) -> bool:
        """Returns whether all earlier work has ended.

        Never blocks; any thread. Raises ServerFault if that work failed.
        """

    def wait(self) -> None:
        """Blocks until the fence is reached; any thread. Raises ServerFault if earlier work failed."""


class TimedFence(Fence, Protocol):
    """A fence with the time at which it was reached, by the device's own clock."""

    def ns_since(self, earlier: Any) -> int:
        """Returns the device time in ns from an earlier timed fence of this device; both are reached. Any thread."""


class Readback(Protocol):
    """A value on its way to the host."""

    def data(self) -> memoryview:
        """Returns the bytes, valid once a later fence is reached and as long as this object lives. Any thread."""


class LoadedPlan(Protocol):
    """A plan of which all kernels are loaded into the device."""

    @property
    def plan(self) -> Plan: ...


class PlanInSlices(Protocol):
    """A plan that runs in slices for one row."""

    def go_on(self, most_ns: int) -> bool:
        """Runs for about `most_ns`, at least one piece of a launch. Returns whether the plan has ended."""


class PlansInSlices(Protocol):
    """The way in which a device runs a plan in slices of time, so that it can do other work in between."""

    def arena_address(self, arena_bytes: int) -> int:
        """Returns where the arena of a sliced plan begins. Whole plans do not use it; one sliced plan at a time may.

        Raises OutOfMemory if the reserved range is smaller than the arena.
        """

    def begin(self, loaded: Any, slots: npt.NDArray[np.int64]) -> PlanInSlices:
        """Begins a plan for one row of a slot table: int64[columns], which must not change until the plan ends."""


class Device(Protocol):
    """A device that runs plans."""

    @property
    def info(self) -> DeviceInfo: ...

    @property
    def in_slices(self) -> PlansInSlices | None:
        """None if a launch only queues work for the device: slices would not shorten the wait of others."""

    @property
    def array_library(self) -> Any:
        """NumPy, or this device's replacement for it: the library of tier 0."""

    def allocate(self, size_bytes: int) -> Block:
        """Allocates uninitialised memory. Raises OutOfMemory."""

    def release(self, block: Block) -> None:
        """Gives a block back. Work that was told earlier may still use it."""

    def write(self, block: Block, data: memoryview) -> None:
        """Copies host bytes into a block, in order. `data` may be reused when this returns."""

    def stage(self, size_bytes: int) -> Staged:
        """Returns host memory in which to gather the bytes of a `put`. It is no device memory. Any thread."""

    def put(self, staged: Staged) -> Block:
        """Returns a block with the staged bytes, whose memory may become the block's. Raises OutOfMemory."""

    def read(self, block: Block, size_bytes: int, first_byte: int = 0) -> Readback:
        """Begins to copy `size_bytes` of a block to the host, from `first_byte` on, in order.

        Raises MemoryError if the host has no memory for them.
        """

    def array(self, block: Block, spec: Spec) -> Any:
        """Returns the block as an array of the array library, in C order, sharing memory."""

    def empty(self, spec: Spec) -> Any:
        """Returns a new array of the array library, in C order, uninitialised. Raises OutOfMemory."""

    def address(self, array: Any) -> int:
        """Returns the address of the first byte of an array of the array library."""

    def load(self, plan: Plan, binaries: Sequence[str]) -> Any:
        """Loads a plan, as a LoadedPlan of this device.

        `binaries[i]` is the path of the compiled file that holds `plan.kernels[i]`. Raises OutOfMemory, and ServerFault
        for a file that is not a compiled file.
        """

    def as_function(self, loaded: Any, slot_layout: SlotLayout, result: Spec) -> Callable[..., Any]:
        """Returns a loaded plan of one op as a function of operand arrays.

        The operands may lie in any order in memory; the result is a new array in C order. The function keeps the plan
        alive. Both this method and the function raise OutOfMemory.
        """

    def arena_address(self, arena_bytes: int, row: int) -> int:
        """Returns where the arena of a row begins. Raises OutOfMemory if the reserved range is too small."""

    def rows_that_fit(self, arena_bytes: int) -> int:
        """Returns how many rows with such an arena the reserved range holds at once."""

    def launch(self, loaded: Any, table: npt.NDArray[np.int64]) -> None:
        """Runs a plan for every row of a slot table, in order. The table may be reused when this returns.

        Raises OutOfMemory if there is no memory for what the device itself needs; then no row has its results.
        """

    def fence(self) -> Fence:
        """Returns a fence behind all work told so far."""

    def timed_fence(self) -> TimedFence:
        """Returns a fence behind all work told so far that knows when it is reached."""

    def pool_bytes(self) -> int:
        """Returns the bytes that are kept for coming allocations. Any thread."""

    def close(self) -> None:
        """Ends the device. No other method may be called afterwards."""
