"""Defines the one interface that every device implements.

A device does its work in the order in which its methods are called. So released memory may be allocated again at once:
the work of a later call runs after all earlier work. Only the device thread calls the methods, except that any thread
may call a method whose docstring says "Any thread".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fusewire_kernels.codegen.dialect import dialect_of
from fusewire_kernels.plan.loop_table import LoopTable
from fusewire_kernels.plan.plan import Plan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.twins import Twin

DEFAULT_ARENA_BYTES = 1 << 28
UNBOUNDED_ROWS = 1 << 31  # what `Device.rows_that_fit` returns if any number of rows fits


class DeviceInfo(NamedTuple):
    """The description of a device, for people and for the planner.

    `dialect` names the language of the device's kernels. It is None if the device runs no kernels; then blocks lie in
    host memory, where NumPy twins compute. Without a compiler the device runs only the kernels of a pack.
    """

    backend: str
    name: str
    dialect: str | None
    architecture: str
    memory_bytes: int
    detail: str
    has_compiler: bool

    @property
    def is_gpu(self) -> bool:
        """Returns whether the device has memory of its own, and runs many rows at a time; else it is the processor."""
        return self.dialect is not None and dialect_of(self.dialect).for_gpu


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Device memory of at least `size_bytes`, aligned to 64 bytes. `owner` is the device's object that frees it.

    Blocks in use have different addresses, so a block with the same three fields is as good as the block.
    """

    address: int
    size_bytes: int
    owner: Any


@dataclass(frozen=True, eq=False)
class Staged:
    """Host memory for a client's value: for the bytes of which `Device.put` makes a block, or those that are read.

    `memory` is writable and uninitialised, and lives as long as any view of it. `owner` is the device's object that
    holds the memory.
    """

    memory: memoryview
    owner: Any


class BlockCount(NamedTuple):
    """The blocks of one size: those that the pool keeps for later allocations, and those in use."""

    size_bytes: int
    free: int
    live: int


class LaunchCounts(NamedTuple):
    """How a device has launched many kernels or iterations by one call: by persistent kernels, and by captured graphs.

    `graphs` are kept now; `captured` and `evicted` count since the start.
    """

    persistent_launches: int = 0
    graphs: int = 0
    captured: int = 0
    evicted: int = 0

    @property
    def form(self) -> str:
        """How a plan has run: by a "persistent" kernel, by "graphs" of its launches, or by these "launches"."""
        if self.persistent_launches:
            return "persistent"
        return "graphs" if self.graphs else "launches"


class Fence(Protocol):
    """A point in the device's order of work."""

    def is_reached(self) -> bool:
        """Returns whether all earlier work has ended. Never blocks. Any thread.

        Raises ServerFault if earlier work failed.
        """

    def wait(self) -> None:
        """Blocks until all earlier work has ended. Any thread. Raises ServerFault if earlier work failed."""


class TimedFence(Fence, Protocol):
    """A fence that knows the time at which it was reached, by the device's own clock."""

    def ns_since(self, earlier: Any) -> int:
        """Returns the device time in ns from `earlier`, a timed fence of this device, to this fence. Any thread.

        The device must have reached both fences.
        """


class Readback(Protocol):
    """A value that the device is copying to the host."""

    def data(self) -> memoryview:
        """Returns the bytes. They are valid after a later fence is reached, and while this object lives. Any thread."""


class LoadedPlan(Protocol):
    """A plan whose kernels are all loaded into the device."""

    @property
    def plan(self) -> Plan: ...

    @property
    def slot_layout(self) -> SlotLayout:
        """Fills slot tables for the plan. Device thread."""

    @property
    def launch_counts(self) -> LaunchCounts:
        """How the device has launched the plan. Any thread."""

    @property
    def why_no_graph(self) -> str:
        """Why the device makes the plan's launches one by one; empty if it has a graph of them. Any thread."""

    @property
    def why_not_persistent(self) -> str:
        """Why the plan's persistent kernel did not run the iterations that came last. Any thread.

        Empty if it did, or if there is no such kernel.
        """


class PersistentKernels(Protocol):
    """The way in which a device runs many iterations of a loop in one launch, after those that come before it once."""

    def can_run(self, loaded: Any, table: LoopTable) -> bool:
        """Returns whether the plan has a persistent kernel for such a table, and such a launch pays.

        If not, the plan's `why_not_persistent` says why.
        """

    def launch(self, loaded: Any, table: LoopTable) -> None:
        """Runs the iterations of a table, after all earlier work.

        The caller may reuse the table when this returns. Raises what `Device.launch` raises.
        """


class Device(Protocol):
    """A device that runs plans."""

    @property
    def info(self) -> DeviceInfo: ...

    @property
    def persistent_kernels(self) -> PersistentKernels | None:
        """Runs many iterations of a loop in one launch. None if the device cannot."""

    def allocate(self, size_bytes: int) -> Block:
        """Allocates uninitialised memory. Raises OutOfMemory."""

    def release(self, block: Block) -> None:
        """Gives a block back. The work of earlier calls may still use the block."""

    def write(self, block: Block, data: memoryview) -> None:
        """Copies host bytes into a block, after all earlier work. The caller may reuse `data` when this returns."""

    def stage(self, size_bytes: int) -> Staged:
        """Returns host memory for the bytes of `put` or `read_part`. Takes no device memory. Any thread.

        Raises MemoryError or OutOfMemory if there is no such memory.
        """

    def put(self, staged: Staged) -> Block:
        """Returns a block with the staged bytes. Raises OutOfMemory.

        The staged memory may become the memory of the block.
        """

    def read(self, block: Block, size_bytes: int, first_byte: int = 0) -> Readback:
        """Begins to copy `size_bytes` of a block to the host, from `first_byte` on, after all earlier work.

        Raises MemoryError if the host has no memory for the copy.
        """

    def read_part(self, block: Block, staged: Staged, part: slice) -> Readback:
        """Begins to copy the bytes of a part of a block to the same place of staged memory, after all earlier work.

        Call `data` of the result once a later fence is reached: the bytes are in the staged memory when it returns.
        Raises MemoryError if the host has no memory for the copy.
        """

    def load(self, plan: Plan, binaries: Sequence[str]) -> Any:
        """Loads a plan. Returns a LoadedPlan of this device.

        `binaries[i]` is the path of the compiled file that holds `plan.kernels[i]`. Raises OutOfMemory. Raises
        ServerFault for a file that is not a compiled file.
        """

    def library_twin(self, call: OneOpCall) -> Twin:
        """Returns what computes a call of a library op by the device's array library, after all earlier work.

        It takes addresses of device memory, and raises OutOfMemory. Raises ServerFault if the library lacks the op.
        """

    def arena_address(self, arena_bytes: int, row: int) -> int:
        """Returns the address of a row's arena. Raises OutOfMemory if the reserved range is too small."""

    def rows_that_fit(self, arena_bytes: int) -> int:
        """Returns how many rows can run at once, if each row needs an arena of `arena_bytes` in the reserved range."""

    def launch(self, loaded: Any, table: npt.NDArray[np.int64], counts: Sequence[int]) -> None:
        """Runs iterations of a plan, one after another, after all earlier work.

        `table` is int64[iterations][rows][columns], dense. Row r runs in the first `counts[r]` iterations; the counts
        do not increase. The caller may reuse the table when this returns. Raises OutOfMemory if there is no memory for
        the data that the device itself needs. Then no row has its results.
        """

    def fence(self) -> Fence:
        """Returns a fence that is reached when the work of all earlier calls has ended."""

    def timed_fence(self) -> TimedFence:
        """Returns a fence as `fence` does. The fence also knows the time at which it was reached."""

    def pool_bytes(self) -> int:
        """Returns the number of free bytes that the device keeps for later allocations. Any thread."""

    def block_counts(self) -> list[BlockCount]:
        """Returns the number of blocks by size, ascending. The sizes are few, whatever is allocated. Any thread."""

    def launch_counts(self) -> LaunchCounts:
        """Returns how the device has launched kernels. Any thread."""

    def close(self) -> None:
        """Ends the device. No other method may be called afterwards."""
