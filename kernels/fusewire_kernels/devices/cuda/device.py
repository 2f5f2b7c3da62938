"""Runs plans on an NVIDIA GPU. All work goes to one stream, which runs it in order.

Released memory may be handed out at once, because the work of its next user comes later in the stream than the work
of its last user. CuPy's memory pool holds the blocks of values and the temporaries of tier 0, so that one bound limits
their sum; small blocks are reused without a call to it (see `block_pool`). The arenas of all rows lie one behind
another in one range of memory, which is reserved at start.

Data from the host pass through a ring of page-locked pages. The device copies from a page asynchronously, and the page
is used again once its fence is reached. So a write or a slot table waits for the device only if the whole ring is in
use. Large values are gathered in page-locked memory, on their way in and on their way out.

All slot tables are copied to one place in device memory. This is safe, because in a stream no copy can overtake the
launches that read the previous table. Many launches are made at once by a captured graph, which has a place of its own
for its table (see `graphs`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np
import numpy.typing as npt
from cupy.cuda import runtime

from fusewire_kernels.compile.cuda_compiler import Nvrtc
from fusewire_kernels.devices.base import (
    DEFAULT_ARENA_BYTES,
    UNBOUNDED_ROWS,
    Block,
    BlockCount,
    DeviceInfo,
    LaunchCounts,
    Readback,
    Staged,
)
from fusewire_kernels.devices.block_pool import BlockPool
from fusewire_kernels.devices.cuda import page_locked
from fusewire_kernels.devices.cuda.driver import CudaFence, Stream, TimedCudaFence
from fusewire_kernels.devices.cuda.graphs import LaunchGraphs
from fusewire_kernels.devices.cuda.launches import MOST_ROWS, PlanLaunches, addresses_of, integers_of
from fusewire_kernels.devices.cuda.library_twins import library_twin
from fusewire_kernels.devices.cuda.modules import load_module
from fusewire_kernels.devices.cuda.persistent import CudaPersistentKernels, PersistentCall, persistent_call
from fusewire_kernels.devices.graph_cache import PlanGraphs, graph_rows
from fusewire_kernels.devices.loaded_files import LoadedFiles
from fusewire_kernels.devices.loop_parts import graphs_of_part, parts_of_loop
from fusewire_kernels.devices.page_ring import PageRing
from fusewire_kernels.devices.part_readback import PartReadback
from fusewire_kernels.devices.retirement import Retirement
from fusewire_kernels.plan.plan import ARENA_ALIGNMENT_BYTES, Plan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.twins import Twin
from fusewire_protos.errors import ConfigurationError, OutOfMemory

_CLUSTERS_AND_EARLY_STARTS = 90  # compute capability 9.0, the first that has both
_EARLY_STARTS_IN_GRAPHS = 12030  # CUDA 12.3, the first whose driver captures kernels that start early
_UNIT_BYTES = 512  # CuPy allocates multiples of it
_LARGEST_CACHED_BYTES = 1 << 20  # for a larger block CuPy's half a microsecond is nothing, and rounding would cost much
_CACHED_BYTES = 1 << 28  # of released blocks; CuPy's pool keeps what is beyond
_OWN_SHARE = 1 / 32  # share of the free memory at start that is left for modules, tables and the driver


@dataclass(frozen=True)
class CudaReadback:
    """A value in page-locked host memory. The memory lives as long as the view."""

    view: memoryview

    def data(self) -> memoryview:
        return self.view


@dataclass(eq=False)
class CudaPlan:
    """A loaded plan, with prepared launches.

    `integers` is device memory with the sizes and operands of all launches. `graphs` counts its captured graphs and
    says how many iterations they have.
    """

    plan: Plan
    slot_layout: SlotLayout
    integers: Any
    launches: PlanLaunches
    graphs: PlanGraphs
    persistent: PersistentCall | None = None
    persistent_launches: int = 0
    why_not_persistent: str = ""

    @property
    def launch_counts(self) -> LaunchCounts:
        graphs = self.graphs
        return LaunchCounts(self.persistent_launches, graphs.kept, graphs.captured, graphs.evicted)

    @property
    def why_no_graph(self) -> str:
        return self.graphs.why_none


class CudaDevice:
    """Implements `Device` on the first visible GPU. Raises ConfigurationError if there is none.

    `memory_bytes` bounds the memory of blocks and temporaries, including released memory that the pool keeps. None
    stands for most of the memory that is free at start. `arena_bytes` is the size of the range reserved for arenas.
    `why` becomes part of the device's description. In the threads that use the device, CuPy uses the device's stream
    and memory.
    """

    def __init__(
        self, *, memory_bytes: int | None = None, arena_bytes: int = DEFAULT_ARENA_BYTES, why: str = ""
    ) -> None:
        _open_device()
        compiler = Nvrtc().version()
        self._lane = cupy.cuda.Stream(non_blocking=True)
        self._stream = Stream(self._lane.ptr)
        self._pool = cupy.cuda.MemoryPool()
        # This pool has no bound, because no request is refused for memory that the device itself needs.
        self._own_pool = cupy.cuda.MemoryPool()
        self._threads: dict[int, ExitStack] = {}  # those that have used the device, with the settings of CuPy for each
        self._enter_thread()
        self._arena_bytes = arena_bytes
        self._arena = _reserve(self._own_pool, arena_bytes)
        self._table = self._take_own(page_locked.PAGE_BYTES)
        self._pages = PageRing(page_locked.pages(), self._stream.fence)
        self._areas = page_locked.Areas()
        self._modules = LoadedFiles(load_module)
        self._persistent_kernels = CudaPersistentKernels(self._stream, self._copied_table)
        self._retirement: Retirement[Any] = Retirement(self._stream.fence)  # CuPy unloads a module that nobody holds
        self._info = _describe(memory_bytes or _most_bytes(), compiler, why)
        start_early = self._has_clusters_and_early_starts and runtime.driverGetVersion() >= _EARLY_STARTS_IN_GRAPHS
        self._graphs = LaunchGraphs(self._stream, self._take_own, start_early=start_early)
        self._pool.set_limit(size=self._info.memory_bytes)
        self._blocks = BlockPool(
            self._new_block,
            limit_bytes=self._info.memory_bytes,
            cached_bytes=_CACHED_BYTES,
            unit_bytes=_UNIT_BYTES,
            largest_bytes=_LARGEST_CACHED_BYTES,
            free=_free,
        )

    @property
    def info(self) -> DeviceInfo:
        return self._info

    @property
    def persistent_kernels(self) -> CudaPersistentKernels:
        return self._persistent_kernels

    def allocate(self, size_bytes: int) -> Block:
        self._enter_thread()
        return self._blocks.take(size_bytes)

    def release(self, block: Block) -> None:
        self._blocks.give_back(block)

    def write(self, block: Block, data: memoryview) -> None:
        self._enter_thread()
        if data.nbytes > 0:
            self._copy_in(block.address, data.cast("B"))

    def stage(self, size_bytes: int) -> Staged:
        lent = self._areas.lend(size_bytes)
        memory = np.empty(size_bytes, np.uint8) if lent is None else np.asarray(lent)[:size_bytes]
        return Staged(memory.data, lent)

    def put(self, staged: Staged) -> Block:
        size_bytes, lent = len(staged.memory), staged.owner
        block = self.allocate(size_bytes)
        if lent is None:
            self.write(block, staged.memory)
        else:
            self._stream.copy_to_device(block.address, lent.page.address, size_bytes)
            lent.page.fence = self._stream.fence()
        return block

    def read(self, block: Block, size_bytes: int, first_byte: int = 0) -> CudaReadback:
        self._enter_thread()
        memory = page_locked.allocate(max(size_bytes, 1))
        if size_bytes > 0:
            self._stream.copy_to_host(memory.ptr, block.address + first_byte, size_bytes)
        return CudaReadback(memoryview(memory).cast("B")[:size_bytes])

    def read_part(self, block: Block, staged: Staged, part: slice) -> Readback:
        size_bytes, place = part.stop - part.start, staged.memory[part]
        if staged.owner is None:
            return PartReadback(self.read(block, size_bytes, part.start), place)
        self._enter_thread()
        self._stream.copy_to_host(staged.owner.page.address + part.start, block.address + part.start, size_bytes)
        return CudaReadback(place)

    def load(self, plan: Plan, binaries: Sequence[str]) -> CudaPlan:
        self._enter_thread()
        self._retire_unheld()
        integers, places = integers_of(plan)
        memory = self._take_own(integers.nbytes)
        self._copy_in(memory.ptr, integers.data.cast("B"))
        modules = [self._modules[path] for path in binaries]
        launches = PlanLaunches(plan, modules, places, memory.ptr, self._stream)
        loaded = CudaPlan(plan, SlotLayout(plan), memory, launches, PlanGraphs(len(launches)))
        loaded.persistent = self._persistent(loaded, places)
        self._modules.hold(loaded, binaries)
        return loaded

    def library_twin(self, call: OneOpCall) -> Twin:
        return library_twin(call, self._pool.malloc)

    def arena_address(self, arena_bytes: int, row: int) -> int:
        if row >= self.rows_that_fit(arena_bytes):
            raise OutOfMemory(
                f"{row + 1} rows of a plan need arenas of {arena_bytes} bytes each;"
                f" device.arena_bytes = {self._arena_bytes}"
            )
        address: int = self._arena.ptr
        return address + row * _aligned(arena_bytes)

    def rows_that_fit(self, arena_bytes: int) -> int:
        return self._arena_bytes // _aligned(arena_bytes) if arena_bytes > 0 else UNBOUNDED_ROWS

    def launch(self, loaded: CudaPlan, table: npt.NDArray[np.int64], counts: Sequence[int]) -> None:
        self._enter_thread()
        for first_row in range(0, len(counts), MOST_ROWS):
            for first, end, rows in parts_of_loop(counts[first_row : first_row + MOST_ROWS]):
                self._launch_iterations(loaded, table[first:end, first_row : first_row + rows])

    def fence(self) -> CudaFence:
        self._enter_thread()
        return self._stream.fence()

    def timed_fence(self) -> TimedCudaFence:
        self._enter_thread()
        return self._stream.timed_fence()

    def pool_bytes(self) -> int:
        free_bytes: int = self._pool.free_bytes()
        return free_bytes + self._blocks.kept_bytes

    def block_counts(self) -> list[BlockCount]:
        return self._blocks.counts()

    def launch_counts(self) -> LaunchCounts:
        graphs = self._graphs.cache
        return LaunchCounts(self._persistent_kernels.launches, graphs.kept, graphs.captured, graphs.evicted)

    def close(self) -> None:
        self._enter_thread()
        self._graphs.close()
        self._stream.fence().wait()
        self._blocks.clear()
        self._pool.free_all_blocks()
        self._threads.pop(threading.get_ident()).close()

    # ---- launching ----

    def _copied_table(self, table: npt.NDArray[np.int64]) -> int:
        """Copies a table to the device, and returns its address."""
        self._enter_thread()
        self._copy_table(table)
        address: int = self._table.ptr
        return address

    def _copy_table(self, table: npt.NDArray[np.int64]) -> None:
        if table.nbytes > self._table.mem.size:
            self._table = self._take_own(table.nbytes)
        self._copy_in(self._table.ptr, table.data.cast("B"))

    def _launch_iterations(self, loaded: CudaPlan, table: npt.NDArray[np.int64]) -> None:
        """Launches the iterations of a table: by graphs where there are some, and else kernel by kernel."""
        slots, sizes = np.ascontiguousarray(table), loaded.graphs.sizes
        iterations, rows, _ = slots.shape
        for span in graphs_of_part(iterations, sizes):
            of_span = slots[span.start : span.stop]
            if len(span) not in sizes or not self._launch_graph(loaded, rows, of_span):
                self._launch_each(loaded, of_span, rows)

    def _launch_graph(self, loaded: CudaPlan, rows: int, slots: npt.NDArray[np.int64]) -> bool:
        """Launches the graph of so many iterations. Returns False if there is none."""
        most_rows = graph_rows(rows, MOST_ROWS)
        graph = self._graphs.find(
            (loaded, most_rows),
            len(slots),
            slots[0, 0].nbytes * most_rows,
            lambda: loaded.launches.own_calls(most_rows),
            loaded.graphs,
        )
        if graph is None:
            return False
        self._copy_in(graph.table_address, _padded(slots, most_rows).data.cast("B"))
        self._graphs.launch(graph)
        return True

    def _launch_each(self, loaded: CudaPlan, table: npt.NDArray[np.int64], rows: int) -> None:
        self._copy_table(table)
        launches, calls = loaded.launches, loaded.launches.calls(rows)
        for iteration in range(len(table)):
            launches.point_at(self._table.ptr + iteration * table[0].nbytes, rows)
            self._stream.launch(calls)

    def _persistent(self, loaded: CudaPlan, places: Sequence[int]) -> PersistentCall | None:
        """Returns the prepared launch of a plan's persistent kernel, if the plan has one that this device can run.

        `places` are as in `PlanIntegers`.
        """
        launch = loaded.plan.persistent
        if launch is None or (launch.clusters and not self._has_clusters_and_early_starts):
            return None
        attributes = cupy.cuda.Device().attributes
        if launch.shared_bytes > attributes["MaxSharedMemoryPerBlockOptin"]:
            return None
        addresses = addresses_of(places[-1], launch.sizes, loaded.integers.ptr)
        kernel, multiprocessors = loaded.launches.kernel(launch.kernel), attributes["MultiProcessorCount"]
        return persistent_call(launch, kernel, addresses, self._stream, multiprocessors)

    @property
    def _has_clusters_and_early_starts(self) -> bool:
        return int(self._info.architecture.removeprefix("sm_")) >= _CLUSTERS_AND_EARLY_STARTS

    def _retire_unheld(self) -> None:
        """Unloads modules that no plan holds, once the device has done every launch that was queued before."""
        unheld = self._modules.take_unheld()
        if unheld:
            self._retirement.retire(unheld)
        self._retirement.drop_unused()

    # ---- memory and transfers ----

    def _new_block(self, size_bytes: int) -> Block:
        memory = self._malloc(size_bytes)
        return Block(memory.ptr, memory.mem.size, memory)

    def _malloc(self, size_bytes: int) -> Any:
        try:
            return self._pool.malloc(max(size_bytes, 1))
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise OutOfMemory(f"the device has no memory for {size_bytes} bytes: {error}") from None

    def _take_own(self, size_bytes: int) -> Any:
        """Allocates memory for the device's own use. Returns CuPy's memory pointer. Raises OutOfMemory."""
        try:
            return self._own_pool.malloc(size_bytes)
        except cupy.cuda.memory.OutOfMemoryError as error:
            text = f"the device has no memory for {size_bytes} bytes of its own beside those of values: {error}"
            raise OutOfMemory(text) from None

    def _copy_in(self, address: int, data: memoryview) -> None:
        for first in range(0, data.nbytes, page_locked.PAGE_BYTES):
            part = data[first : first + page_locked.PAGE_BYTES]
            self._stream.copy_to_device(address + first, self._pages.put(part), part.nbytes)

    def _enter_thread(self) -> None:
        """Makes CuPy use the device's stream in the calling thread."""
        thread = threading.get_ident()
        if thread not in self._threads:
            runtime.setDevice(0)
            self._threads[thread] = ExitStack()
            self._threads[thread].enter_context(self._lane)


def _open_device() -> None:
    """Creates the CUDA context of the first GPU. Raises ConfigurationError if no GPU can be used."""
    try:
        runtime.setDevice(0)
        runtime.deviceSynchronize()
    except runtime.CUDARuntimeError as error:
        raise ConfigurationError(f"no CUDA device can be used: {error}") from None


def _free(block: Block) -> None:
    """Gives the memory back at once, although somebody may still hold the block."""
    block.owner.mem.free()


def _reserve(pool: Any, arena_bytes: int) -> Any:
    try:
        return pool.malloc(arena_bytes)
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise ConfigurationError(f"device.arena_bytes = {arena_bytes} cannot be reserved: {error}") from None


def _most_bytes() -> int:
    """Returns the default of `memory_bytes`: the free memory less `_OWN_SHARE`."""
    free_bytes: int = runtime.memGetInfo()[0]
    return int(free_bytes * (1 - _OWN_SHARE))


def _describe(memory_bytes: int, compiler: str, why: str) -> DeviceInfo:
    properties = runtime.getDeviceProperties(0)
    versions = (
        f"driver for CUDA {_version(runtime.driverGetVersion())}",
        f"CUDA {_version(runtime.runtimeGetVersion())}",
        compiler,
        f"CuPy {cupy.__version__}",
    )
    return DeviceInfo(
        backend="cuda",
        name=properties["name"].decode(),
        dialect="cuda",
        architecture=f"sm_{properties['major']}{properties['minor']}",
        memory_bytes=memory_bytes,
        detail="; ".join(filter(None, (why, ", ".join(versions)))),
        has_compiler=True,
    )


def _version(number: int) -> str:
    """Returns a version as text. CUDA encodes version 13.1 as the integer 13010."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _padded(slots: npt.NDArray[np.int64], rows: int) -> npt.NDArray[np.int64]:
    """Returns the slots of some iterations with further rows of zeros, which kernels skip."""
    iterations, filled, columns = slots.shape
    if filled == rows:
        return slots
    padded = np.zeros((iterations, rows, columns), np.int64)
    padded[:, :filled] = slots
    return padded


def _aligned(arena_bytes: int) -> int:
    return -(-arena_bytes // ARENA_ALIGNMENT_BYTES) * ARENA_ALIGNMENT_BYTES
