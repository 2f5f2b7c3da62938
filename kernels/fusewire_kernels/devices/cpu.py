"""Runs plans on the CPU, on the calling thread. So every fence is reached when it is made.

Memory comes from NumPy, in blocks of a few sizes. Released blocks are kept for later requests (see `block_pool`). Small
blocks share an array, because an array of their own would take several times their bytes.

Rows run one after another, so all rows use the same arena. The arena lies in a range of addresses that is reserved at
start. Only the pages that plans touch take memory.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import threading
import time
import weakref
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.compile.c_compiler import Toolchain, compile_library, find_compiler
from fusewire_kernels.compile.kernel_pack import RUNTIME_KEY, KernelPack
from fusewire_kernels.devices.base import (
    DEFAULT_ARENA_BYTES,
    UNBOUNDED_ROWS,
    Block,
    BlockCount,
    DeviceInfo,
    LaunchCounts,
    Staged,
)
from fusewire_kernels.devices.block_pool import BlockPool
from fusewire_kernels.devices.loaded_files import LoadedFiles
from fusewire_kernels.plan.plan import KernelSource, Launch, Plan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.twins import Twin, twin_of
from fusewire_protos.errors import ConfigurationError, OutOfMemory, ServerFault, bounded_text

DEFAULT_CACHED_BYTES = 1 << 30
_WITHOUT_COMPILER = "NumPy runs programs op by op"

_ALIGNMENT_BYTES = 64
_MAP_NORESERVE = 0x4000 if platform.system() == "Linux" else 0  # Python has this constant from 3.13 on
_SHARING_BYTES, _SHARED_BYTES = 512, 16 << 10  # blocks up to the first size share an array of the second
_SMALL_BYTES = 4096  # up to this size, a copy without NumPy is faster, although it does not let other threads run

# Returns the memory of a buffer, as an argument of C. Raises TypeError if the buffer is read-only or not dense.
_memory_of: Callable[[Any], ctypes.Array[ctypes.c_char]] = (ctypes.c_char * 0).from_buffer

_process = ctypes.CDLL(None)
_dlopen, _dlerror, _dlclose = _process.dlopen, _process.dlerror, _process.dlclose
_dlopen.restype, _dlopen.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
_dlerror.restype, _dlerror.argtypes = ctypes.c_char_p, ()
_dlclose.argtypes = (ctypes.c_void_p,)


class ReachedFence:
    """A fence on the CPU. It is always reached, because each call returns only when its work has ended."""

    def is_reached(self) -> bool:
        return True

    def wait(self) -> None:
        return


class ClockedFence(ReachedFence):
    """A timed fence that is reached when it is made."""

    def __init__(self) -> None:
        self._reached_at_ns = time.perf_counter_ns()

    def ns_since(self, earlier: ClockedFence) -> int:
        return self._reached_at_ns - earlier._reached_at_ns


_REACHED = ReachedFence()


class HostCopy(NamedTuple):
    """A value that `CpuDevice.read` has copied before it returned. So the value's block may be reused at once."""

    copied: bytes | memoryview

    def data(self) -> memoryview:
        return memoryview(self.copied)


class _Lent(NamedTuple):
    """A block of staged memory, and what takes it back once its memory is dropped."""

    block: Block
    drop: weakref.finalize[[Block], npt.NDArray[np.uint8]]


@dataclass(frozen=True, eq=False)
class CpuPlan:
    """A plan with the addresses that its launches need.

    `integers` holds the sizes and the operands of all launches. `launches` is the structure that runtime.c defines for
    a plan. It lies at `address`, and contains addresses of elements of `integers`.
    """

    plan: Plan
    slot_layout: SlotLayout
    launches: npt.NDArray[np.int64]
    integers: npt.NDArray[np.int64]
    address: int

    @property
    def launch_counts(self) -> LaunchCounts:
        return LaunchCounts()

    @property
    def why_no_graph(self) -> str:
        return "the processor runs all launches in one call"

    @property
    def why_not_persistent(self) -> str:
        return ""


class CpuDevice:
    """Implements `Device`. If there is neither a C compiler that works nor a pack, the device only holds memory.

    `pack` holds kernels that are compiled already, and the runtime that launches them.
    `memory_bytes` limits the blocks in use and the released blocks that the pool keeps, taken together. If it is None,
    the limit is the machine's memory. `cached_bytes` limits the blocks that the pool keeps. `arena_bytes` is the size
    of the reserved range. `why` tells people why this device was chosen.
    """

    def __init__(
        self,
        *,
        memory_bytes: int | None = None,
        arena_bytes: int = DEFAULT_ARENA_BYTES,
        cached_bytes: int = DEFAULT_CACHED_BYTES,
        why: str = "",
        pack: KernelPack | None = None,
        find: Callable[[], Toolchain | None] = find_compiler,
    ) -> None:
        toolchain = find()
        limit_bytes = memory_bytes or _physical_memory_bytes()
        memory = _Memory()
        self._pool = BlockPool(
            memory.block,
            limit_bytes=limit_bytes,
            cached_bytes=cached_bytes,
            unit_bytes=_ALIGNMENT_BYTES,
            free=memory.free,
        )
        self._arena = _reserve(arena_bytes)
        self._arena_address = ctypes.addressof(_memory_of(self._arena))
        self._libraries = LoadedFiles(_load_library)
        runtime, detail = _start_runtime(toolchain, pack)
        self._run: Any = runtime.fw_run if runtime else None
        self._info = DeviceInfo(
            backend="cpu",
            name=_processor_name(),
            dialect="c" if runtime else None,
            architecture=platform.machine(),
            memory_bytes=limit_bytes,
            detail="; ".join(filter(None, (why, detail))),
            has_compiler=runtime is not None and toolchain is not None,
        )

    @property
    def info(self) -> DeviceInfo:
        return self._info

    @property
    def persistent_kernels(self) -> None:
        return None

    def allocate(self, size_bytes: int) -> Block:
        return self._pool.take(size_bytes)

    def release(self, block: Block) -> None:
        self._pool.give_back(block)

    def write(self, block: Block, data: memoryview) -> None:
        _copy(np.frombuffer(_bytes_of(block, 0, data.nbytes), np.uint8), np.frombuffer(data, np.uint8))

    def stage(self, size_bytes: int) -> Staged:
        # A lent block may be dropped without being freed, so it must not be a part of a shared array.
        block = self._pool.lend(max(size_bytes, _SHARING_BYTES + 1))
        # New memory has to be cleared first, so a block is kept once nobody has a view of it.
        memory = np.frombuffer(_bytes_of(block, 0, size_bytes), np.uint8)
        drop = weakref.finalize(memory, self._pool.take_back, block)
        drop.atexit = False
        return Staged(memory.data, _Lent(block, drop))

    def put(self, staged: Staged) -> Block:
        staged.owner.drop.detach()
        return self._pool.adopt(staged.owner.block, len(staged.memory))

    def read(self, block: Block, size_bytes: int, first_byte: int = 0) -> HostCopy:
        if size_bytes <= _SMALL_BYTES:
            return HostCopy(bytes(_bytes_of(block, first_byte, first_byte + size_bytes)))
        copied = np.empty(size_bytes, np.uint8)
        _copy(copied, np.frombuffer(_bytes_of(block, first_byte, first_byte + size_bytes), np.uint8))
        return HostCopy(copied.data)

    def read_part(self, block: Block, staged: Staged, part: slice) -> HostCopy:
        _copy(
            np.frombuffer(staged.memory[part], np.uint8),
            np.frombuffer(_bytes_of(block, part.start, part.stop), np.uint8),
        )
        return HostCopy(staged.memory[part])

    def load(self, plan: Plan, binaries: Sequence[str]) -> CpuPlan:
        self._unload_unheld()
        functions = [self._function(path, source.key) for path, source in zip(binaries, plan.kernels, strict=True)]
        integers, places = _flatten(plan.launches)
        base = integers.ctypes.data
        fields = [len(plan.columns), len(plan.launches)]
        for launch, place in zip(plan.launches, places, strict=True):
            arity = len(launch.instances[0]) if launch.instances else 0
            sizes, operands = base + place * 8, base + (place + len(launch.sizes)) * 8
            fields += functions[launch.kernel], sizes, operands, len(launch.instances), arity
        launches = np.array(fields, np.int64)
        loaded = CpuPlan(plan, SlotLayout(plan), launches, integers, launches.ctypes.data)
        self._libraries.hold(loaded, binaries)
        return loaded

    def library_twin(self, call: OneOpCall) -> Twin:
        return twin_of(call)

    def arena_address(self, arena_bytes: int, row: int) -> int:
        if arena_bytes > len(self._arena):
            text = f"a plan needs an arena of {arena_bytes} bytes; device.arena_bytes = {len(self._arena)}"
            raise OutOfMemory(text)
        return self._arena_address

    def rows_that_fit(self, arena_bytes: int) -> int:
        # All rows share the arena.
        return UNBOUNDED_ROWS if arena_bytes <= len(self._arena) else 0

    def launch(self, loaded: CpuPlan, table: npt.NDArray[np.int64], counts: Sequence[int]) -> None:
        self._run(loaded.address, _memory_of(table), len(counts), array("q", counts).tobytes())

    def fence(self) -> ReachedFence:
        return _REACHED

    def timed_fence(self) -> ClockedFence:
        return ClockedFence()

    def pool_bytes(self) -> int:
        return self._pool.kept_bytes

    def block_counts(self) -> list[BlockCount]:
        return self._pool.counts()

    def launch_counts(self) -> LaunchCounts:
        return LaunchCounts()

    def close(self) -> None:
        self._pool.clear()
        self._unload_unheld()

    def _function(self, path: str, key: str) -> int:
        try:
            address = ctypes.cast(self._libraries[path][key], ctypes.c_void_p).value
        except AttributeError:
            raise ServerFault(f"the compiled file {path} does not contain the kernel {key}") from None
        assert address is not None
        return address

    def _unload_unheld(self) -> None:
        """Unloads files that no plan holds. No code of such a file runs, because a launch keeps its plan alive."""
        for library in self._libraries.take_unheld():
            _unload_library(library)


def runtime_source() -> KernelSource:
    """Returns the source of what launches kernels. It is complete: no prelude comes before it."""
    return KernelSource(RUNTIME_KEY, files(__package__).joinpath("runtime.c").read_text(encoding="utf-8"))


def _start_runtime(toolchain: Toolchain | None, pack: KernelPack | None) -> tuple[Any, str]:
    """Returns the library that runs plans, and what compiles them. If that does not work, returns None, and why."""
    source = runtime_source()
    runtime = _packed_runtime(pack, source)
    if runtime is None:
        if toolchain is None:
            return None, f"no C compiler found: {_WITHOUT_COMPILER}"
        try:
            runtime = _load_library(compile_library(source, toolchain))
        except ServerFault as fault:
            return None, f"{toolchain.compiler} does not work, so {_WITHOUT_COMPILER}: {bounded_text(str(fault))}"
    address, count = ctypes.c_void_p, ctypes.c_int64
    runtime.fw_run.restype = None
    runtime.fw_run.argtypes = (address, address, count, address)
    if toolchain is None:
        return runtime, "no C compiler found: kernels that came with Fusewire run programs op by op"
    return runtime, toolchain.version.splitlines()[-1]


def _packed_runtime(pack: KernelPack | None, source: KernelSource) -> ctypes.CDLL | None:
    """Returns the library in a pack that runs plans. Returns None if there is none, or none for a system as this."""
    found = pack.find([source]) if pack else None
    with suppress(ServerFault):
        return _load_library(found[0]) if found else None
    return None


def _load_library(path: str) -> ctypes.CDLL:
    """Loads a library. Loading may take a millisecond, so `dlopen` is called in a way that lets other threads run."""
    handle = _dlopen(os.fsencode(path), os.RTLD_NOW)
    if handle is None:
        raise ServerFault(
            f"the compiled file {path} cannot be loaded: {os.fsdecode(_dlerror() or b'the system gives no reason')}"
        )
    return ctypes.CDLL(path, handle=handle)


def _unload_library(library: ctypes.CDLL) -> None:
    _dlclose(library._handle)


def _copy(target: npt.NDArray[np.uint8], source: npt.NDArray[np.uint8]) -> None:
    """Copies bytes by NumPy, which lets other threads run during the copy. Assigning to a memoryview would not."""
    np.copyto(target, source)


class _Area(NamedTuple):
    """Aligned memory of one block. It is freed when nobody holds it."""

    address: int
    memory: memoryview


class _SharedArea:
    """Aligned memory of several small blocks. `free` are those that were freed while others are used, by size."""

    def __init__(self) -> None:
        self.address, self.memory = _new_area(_SHARED_BYTES)
        self.free: defaultdict[int, list[Block]] = defaultdict(list)
        self._taken_bytes = 0  # by blocks that were cut of it
        self._used = 0

    def cut(self, size_bytes: int) -> Block | None:
        """Returns a block of memory that was none before. Returns None if too little is left."""
        if self._taken_bytes + size_bytes > _SHARED_BYTES:
            return None
        address = self.address + self._taken_bytes
        self._taken_bytes += size_bytes
        self._used += 1
        return Block(address, size_bytes, self)

    def use_again(self, size_bytes: int) -> Block:
        """Returns a block that was freed."""
        self._used += 1
        return self.free[size_bytes].pop()

    def take_back(self, block: Block) -> bool:
        """Takes a block back. Returns whether others are still used."""
        self._used -= 1
        self.free[block.size_bytes].append(block)
        return self._used > 0

    def begin_again(self) -> None:
        """Forgets the blocks, of which none is used."""
        self.free.clear()
        self._taken_bytes = 0


class _Memory:
    """Allocates blocks. Any thread.

    The memory of a small block is used again for blocks of its size as long as others of its array are used. So the
    arrays of small blocks take no more than the blocks of each size once did, however few are left.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared = _SharedArea()  # of which small blocks are cut
        # By size, the areas of which such blocks are free.
        self._with_free: defaultdict[int, dict[_SharedArea, None]] = defaultdict(dict)

    def block(self, size_bytes: int) -> Block:
        """Returns a block of exactly `size_bytes`, a multiple of the alignment if small. Raises OutOfMemory."""
        if size_bytes > _SHARING_BYTES:
            area = _new_area(size_bytes)
            return Block(area.address, size_bytes, area)
        with self._lock:
            areas = self._with_free[size_bytes]
            if areas:
                last = next(reversed(areas))
                block = last.use_again(size_bytes)
                if not last.free[size_bytes]:
                    del areas[last]
                return block
            cut = self._shared.cut(size_bytes)
            if cut is None:
                self._shared = _SharedArea()
                cut = self._shared.cut(size_bytes)
                assert cut is not None, "a new array has room for a small block"
            return cut

    def free(self, block: Block) -> None:
        """Takes a block that nobody uses. Larger ones are freed when nobody holds them."""
        area = block.owner
        if not isinstance(area, _SharedArea):
            return
        with self._lock:
            if area.take_back(block):
                self._with_free[block.size_bytes][area] = None
                return
            for size_bytes in area.free:
                self._with_free[size_bytes].pop(area, None)
            area.begin_again()  # if it is not the one of which blocks are cut, nobody holds it now


def _new_area(size_bytes: int) -> _Area:
    try:
        memory = np.empty(size_bytes + _ALIGNMENT_BYTES, np.uint8)
    except MemoryError as error:
        raise OutOfMemory(f"the system has no memory for {size_bytes} bytes") from error
    address = memory.ctypes.data
    offset = -address % _ALIGNMENT_BYTES
    return _Area(address + offset, memory.data[offset : offset + size_bytes])


def _bytes_of(block: Block, start: int, stop: int) -> memoryview:
    """Returns some bytes of a block."""
    area: _Area | _SharedArea = block.owner
    offset = block.address - area.address
    return area.memory[offset + start : offset + stop]


def _flatten(launches: Sequence[Launch]) -> tuple[npt.NDArray[np.int64], list[int]]:
    """Returns one array with the sizes and operands of all launches, and the position at which each launch begins."""
    integers: list[int] = []
    places = []
    for launch in launches:
        places.append(len(integers))
        integers.extend(launch.sizes)
        for instance in launch.instances:
            for operand in instance:
                integers.extend(operand)
    return np.array(integers, np.int64), places


def _reserve(size_bytes: int) -> mmap.mmap:
    """Reserves a range of addresses. Only the pages of the range that are touched take memory."""
    try:
        return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    except OSError as error:
        raise ConfigurationError(f"device.arena_bytes = {size_bytes} cannot be reserved: {error}") from error


def _physical_memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
