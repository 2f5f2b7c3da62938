"""Provides a device for tests of scheduling and protocol. The device computes nothing and can complete work on command.

The device records every launch. Its memory consists of host arrays of zeros, so that addresses and sizes are real.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.base import Block, BlockCount, DeviceInfo, LaunchCounts, Staged
from fusewire_kernels.devices.part_readback import PartReadback
from fusewire_kernels.plan.plan import Plan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.twins import Twin, twin_of
from fusewire_protos.errors import OutOfMemory

_NO_LAUNCHES = LaunchCounts()
_LAUNCHES_KEPT = 10_000  # a load test gives the device any number of launches


class NullFence:
    """A fence that is reached when `reach` is called.

    `reached_at_ns` is the time of the device's clock at that call.
    """

    def __init__(self, clock_ns: Callable[[], int], *, is_timed: bool) -> None:
        self.is_timed = is_timed
        self._reached = threading.Event()
        self._clock_ns = clock_ns
        self.reached_at_ns = 0

    def is_reached(self) -> bool:
        return self._reached.is_set()

    def wait(self) -> None:
        self._reached.wait()

    def reach(self) -> None:
        self.reached_at_ns = self._clock_ns()
        self._reached.set()

    def ns_since(self, earlier: NullFence) -> int:
        return self.reached_at_ns - earlier.reached_at_ns


@dataclass(frozen=True)
class NullReadback:
    """A value that holds the bytes that were written last. All bytes are zero if nothing was written."""

    bytes_host: npt.NDArray[np.uint8]

    def data(self) -> memoryview:
        return memoryview(self.bytes_host.tobytes())


@dataclass(frozen=True, eq=False)
class NullPlan:
    plan: Plan
    slot_layout: SlotLayout
    launch_counts: LaunchCounts = _NO_LAUNCHES
    why_no_graph: str = "nothing is launched"
    why_not_persistent: str = ""


class NullDevice:
    """Implements `Device`. `launched` holds the plan and the row count of the last iterations, in order.

    `clock_ns` is the time of the device's clock. Only a test changes this time.
    """

    def __init__(self, *, completes_by_itself: bool = True, memory_bytes: int = 1 << 40) -> None:
        self.completes_by_itself = completes_by_itself
        self.launched: deque[tuple[Plan, int]] = deque(maxlen=_LAUNCHES_KEPT)
        self.live_bytes = 0
        self.clock_ns = 0
        self._memory_bytes = memory_bytes
        # Work that has not ended, oldest first. None stands for a launch.
        self._submitted: deque[NullFence | None] = deque()

    @property
    def info(self) -> DeviceInfo:
        return DeviceInfo("null", "null", None, "", self._memory_bytes, "computes nothing", has_compiler=False)

    @property
    def persistent_kernels(self) -> None:
        return None

    def allocate(self, size_bytes: int) -> Block:
        if self.live_bytes + size_bytes > self._memory_bytes:
            raise OutOfMemory(f"{size_bytes} bytes are needed, {self._memory_bytes - self.live_bytes} are left")
        self.live_bytes += size_bytes
        memory = np.zeros(size_bytes, np.uint8)
        return Block(memory.ctypes.data, size_bytes, memory)

    def release(self, block: Block) -> None:
        self.live_bytes -= block.size_bytes

    def write(self, block: Block, data: memoryview) -> None:
        block.owner[: len(data)] = np.frombuffer(data, np.uint8)

    def stage(self, size_bytes: int) -> Staged:
        return Staged(np.empty(size_bytes, np.uint8).data, None)

    def put(self, staged: Staged) -> Block:
        block = self.allocate(len(staged.memory))
        self.write(block, staged.memory)
        return block

    def read(self, block: Block, size_bytes: int, first_byte: int = 0) -> NullReadback:
        return NullReadback(block.owner[first_byte : first_byte + size_bytes])

    def read_part(self, block: Block, staged: Staged, part: slice) -> PartReadback:
        return PartReadback(self.read(block, part.stop - part.start, part.start), staged.memory[part])

    def load(self, plan: Plan, binaries: Sequence[str]) -> NullPlan:
        return NullPlan(plan, SlotLayout(plan))

    def library_twin(self, call: OneOpCall) -> Twin:
        return twin_of(call)

    def arena_address(self, arena_bytes: int, row: int) -> int:
        return row * arena_bytes

    def rows_that_fit(self, arena_bytes: int) -> int:
        return 1 << 16

    def launch(self, loaded: NullPlan, table: npt.NDArray[np.int64], counts: Sequence[int]) -> None:
        rows = len(counts)
        for iteration, slots in enumerate(table):
            while counts[rows - 1] <= iteration:
                rows -= 1
            self.launch_iteration(loaded, slots[:rows])

    def launch_iteration(self, loaded: NullPlan, slots: npt.NDArray[np.int64]) -> None:
        """Notes a launch of one iteration. `slots` is int64[rows][columns]."""
        self.launched.append((loaded.plan, len(slots)))
        if not self.completes_by_itself:
            self._submitted.append(None)

    def fence(self) -> NullFence:
        return self._fence(is_timed=False)

    def timed_fence(self) -> NullFence:
        return self._fence(is_timed=True)

    def _fence(self, *, is_timed: bool) -> NullFence:
        fence = NullFence(lambda: self.clock_ns, is_timed=is_timed)
        if self.completes_by_itself or (is_timed and not self._submitted):
            fence.reach()
        else:
            self._submitted.append(fence)
        return fence

    def complete_next(self) -> bool:
        """Completes the oldest launch or fence. Returns False if nothing is left to complete. Any thread may call."""
        if not self._submitted:
            return False
        fence = self._submitted.popleft()
        if fence is not None:
            fence.reach()
        self._reach_timed()
        return True

    def _reach_timed(self) -> None:
        """Reaches each timed fence that is not behind a launch or another fence."""
        while self._submitted and (fence := self._submitted[0]) is not None and fence.is_timed:
            fence.reach()
            self._submitted.popleft()

    def pool_bytes(self) -> int:
        return 0

    def block_counts(self) -> list[BlockCount]:
        return []

    def launch_counts(self) -> LaunchCounts:
        return LaunchCounts()

    def close(self) -> None:
        while self.complete_next():
            pass
