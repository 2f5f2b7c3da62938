"""The one interface behind which a device stands.

A device executes in the order in which it is told (one lane). Memory given back may be handed out again at once,
because everything told later runs later. Methods are called from one thread, the device thread, unless said otherwise.
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
    """What a device is, for people and for the planner. `dialect` is the generator's ("c", "cuda") or None where
    nothing is compiled. `is_library_exact`: whether the array library's arithmetic is IEEE 754 to the last bit.
    `is_host`: whether the device is this processor, so that any thread may use it, though one at a time.
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
    """Device memory of at least `size_bytes`, 64-byte aligned. `owner` is whatever the device needs to free it."""

    address: int
    size_bytes: int
    owner: Any


@dataclass(frozen=True, eq=False)
class Staged:
    """Host memory to gather a value in. `memory` is writable and not filled; `owner` is whatever the device needs."""

    memory: memoryview
    owner: Any


class Fence(Protocol):
    """A point in the device's order of work."""

    def is_reached(self) -> bool:
        """Whether all work told before it has ended. Never blocks; any thread. Raises ServerFault if it failed."""

    def wait(self) -> None:
        """Blocks until it is reached; any thread. Raises ServerFault if the work failed."""


class TimedFence(Fence, Protocol):
    """A fence that knows when it was reached, by the device's own clock."""

    def ns_since(self, earlier: Any) -> int:
        """Device time from an earlier timed fence of this device to this one, in ns. Both are reached. Any thread."""


class Readback(Protocol):
    """A value on its way to the host."""

    def data(self) -> memoryview:
        """The bytes, valid once a fence made after the read is reached, as long as this object lives. Any thread."""


class LoadedPlan(Protocol):
    """A plan whose kernels are loaded into the device."""

    @property
    def plan(self) -> Plan: ...


class PlanInSlices(Protocol):
    """A plan under way for one row."""

    def go_on(self, most_ns: int) -> bool:
        """Runs on for about so long, and whether it has come to its end. A slice takes a piece of a launch at least."""


class PlansInSlices(Protocol):
    """How a device runs a plan in slices of time, between which it does whatever else it is told."""

    def arena_address(self, arena_bytes: int) -> int:
        """Where the arena of such a plan begins, which others leave alone. There is one: for one plan at a time.

        Raises OutOfMemory if the range does not hold it.
        """

    def begin(self, loaded: Any, slots: npt.NDArray[np.int64]) -> PlanInSlices:
        """A plan that has not run yet, for a row of a slot table: int64[columns], which stays as it is to the end."""


class Device(Protocol):
    """Where plans run."""

    @property
    def info(self) -> DeviceInfo: ...

    @property
    def in_slices(self) -> PlansInSlices | None:
        """None where a launch only tells the device what to do: others would not wait any shorter."""

    @property
    def array_library(self) -> Any:
        """NumPy, or what stands for it here: the library of tier 0."""

    def allocate(self, size_bytes: int) -> Block:
        """Uninitialised memory. Raises OutOfMemory."""

    def release(self, block: Block) -> None:
        """Gives a block back; work already told may still use it."""

    def write(self, block: Block, data: memoryview) -> None:
        """Copies host bytes into a block, in order; `data` may be reused when it returns."""

    def stage(self, size_bytes: int) -> Staged:
        """Host memory in which to gather what one `put` takes. Counts as no memory of the device; any thread."""

    def put(self, staged: Staged) -> Block:
        """A block that holds the bytes staged, whose memory may become the block's. Raises OutOfMemory."""

    def read(self, block: Block, size_bytes: int, first_byte: int = 0) -> Readback:
        """Begins to copy a block to the host, or the part of it that begins there, in order.

        Raises MemoryError if the host has no room.
        """

    def array(self, block: Block, spec: Spec) -> Any:
        """The block as an array of the array library, C order, sharing memory."""

    def empty(self, spec: Spec) -> Any:
        """A new array of the array library, C order, uninitialised. Raises OutOfMemory."""

    def address(self, array: Any) -> int:
        """Where an array of the array library begins."""

    def load(self, plan: Plan, binaries: Sequence[str]) -> Any:
        """Loads a plan, as a LoadedPlan of this device.

        `binaries[i]` is the path of the compiled file that holds `plan.kernels[i]`. Raises OutOfMemory, and ServerFault
        for a file that is none.
        """

    def as_function(self, loaded: Any, slot_layout: SlotLayout, result: Spec) -> Callable[..., Any]:
        """A loaded plan of one op as a function: of operand arrays in any order, giving a new array in C order.

        Whoever holds it holds the plan. It raises OutOfMemory, as does this.
        """

    def arena_address(self, arena_bytes: int, row: int) -> int:
        """Where the arena of a row begins. Raises OutOfMemory if the range does not hold it."""

    def rows_that_fit(self, arena_bytes: int) -> int:
        """How many rows of such an arena the reserved range holds at once."""

    def launch(self, loaded: Any, table: npt.NDArray[np.int64]) -> None:
        """Runs a plan for every row of a slot table, in order. The table may be reused when it returns.

        Raises OutOfMemory if there is no room for what the device itself needs; then no row has its results.
        """

    def fence(self) -> Fence:
        """The point after all work told so far."""

    def timed_fence(self) -> TimedFence:
        """The same, with the time at which it is reached."""

    def pool_bytes(self) -> int:
        """Memory held ready for coming allocations. Any thread."""

    def close(self) -> None:
        """Ends the device; no other method may be called after."""
