"""The CPU device: memory that is kept and bounded, and plans run in one call."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from weakref import ref

import numpy as np
import pytest

from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.compile.c_compiler import Toolchain, compile_kernels
from fusewire_kernels.compile.watch import Bounds
from fusewire_kernels.devices.base import Block
from fusewire_kernels.devices.cpu import CpuDevice
from fusewire_kernels.ir.kernel import Argument, ArgumentKind, LoopKernel, Store, Stride
from fusewire_kernels.plan.plan import ArenaColumn, Cost, KernelSource, Plan
from fusewire_protos.errors import ConfigurationError, OutOfMemory, ServerFault
from fusewire_protos.ops import dtypes
from tests.kernels.devices.conformance import ARENA_BYTES, DeviceConformance, Machine
from tests.kernels.devices.conformance import MEMORY_BYTES as MACHINE_MEMORY_BYTES
from tests.kernels.launching import launch_slots
from tests.kernels.problems import node, toolchain_in
from tests.shell_programs import shell_program

MEMORY_BYTES = 1 << 20


class TestConformance(DeviceConformance):
    """What every device must do."""

    @pytest.fixture
    def machine(self, toolchain: Toolchain) -> Iterator[Machine]:
        device = CpuDevice(memory_bytes=MACHINE_MEMORY_BYTES, arena_bytes=ARENA_BYTES, find=lambda: toolchain)
        yield Machine(device, lambda sources: compile_kernels(sources, toolchain))
        device.close()


@pytest.fixture
def device() -> Iterator[CpuDevice]:
    """A device without a compiler."""
    device = CpuDevice(memory_bytes=MEMORY_BYTES, arena_bytes=1 << 16, cached_bytes=1 << 18, find=lambda: None)
    yield device
    device.close()


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return toolchain_in(tmp_path_factory.mktemp("cache"))


# ---- memory ----


def test_a_released_block_is_staged_again(device: CpuDevice) -> None:
    block = device.allocate(1000)
    device.release(block)
    staged = device.stage(990)
    assert device.pool_bytes() == 0
    assert device.put(staged) is block


def test_staged_memory_is_staged_again_once_nobody_has_a_view_of_it(device: CpuDevice) -> None:
    staged = device.stage(1000)
    address = np.frombuffer(staged.memory, np.uint8).ctypes.data
    view = staged.memory[10:20]
    del staged
    assert np.frombuffer(device.stage(1000).memory, np.uint8).ctypes.data != address
    del view
    others = [device.stage(1000) for _ in range(2)]
    assert address in [np.frombuffer(other.memory, np.uint8).ctypes.data for other in others]


def test_memory_that_became_a_block_is_not_staged_while_the_block_is_used(device: CpuDevice) -> None:
    block = device.put(device.stage(1000))
    addresses = [np.frombuffer(device.stage(1000).memory, np.uint8).ctypes.data for _ in range(3)]
    assert block.address not in addresses


def test_small_blocks_that_are_left_hold_no_more_memory_than_there_were_blocks() -> None:
    """The pool keeps none, so each is freed: whoever keeps one of many must not keep the memory of all."""
    device = CpuDevice(arena_bytes=1 << 16, cached_bytes=0, find=lambda: None)
    kept: list[Block] = []
    for _ in range(50):
        *others, left = [device.allocate(64) for _ in range(256)]
        kept.append(left)
        for block in others:
            device.release(block)
    assert len({block.address >> 14 for block in kept}) <= 3
    for number, block in enumerate(kept):
        device.write(block, memoryview(bytes([number]) * 64))
    assert [device.read(block, 1).data()[0] for block in kept] == [*range(50)]


def test_a_shared_array_is_freed_with_the_last_of_its_blocks() -> None:
    device = CpuDevice(arena_bytes=1 << 16, cached_bytes=0, find=lambda: None)
    blocks = [device.allocate(64) for _ in range(300)]
    first, current = ref(blocks[0].owner), ref(blocks[-1].owner)
    for block in blocks:
        device.release(block)
    del block, blocks
    assert first() is None
    assert current() is device.allocate(64).owner


def test_staged_memory_is_no_part_of_a_shared_array(device: CpuDevice) -> None:
    small, staged = device.allocate(64), device.stage(64)
    assert len(staged.memory) == 64
    assert device.put(staged).owner is not small.owner


def test_staged_memory_that_never_becomes_a_block_takes_none_of_the_devices(device: CpuDevice) -> None:
    device.release(device.allocate(MEMORY_BYTES))
    for _ in range(3):
        device.stage(MEMORY_BYTES)
    assert device.allocate(MEMORY_BYTES).size_bytes == MEMORY_BYTES


def test_rows_share_one_arena_that_does_not_move(device: CpuDevice) -> None:
    assert device.arena_address(100, 0) == device.arena_address(1 << 16, 7)
    assert device.rows_that_fit(1 << 16) > 1000


def test_an_arena_that_does_not_fit_is_refused(device: CpuDevice) -> None:
    assert device.rows_that_fit((1 << 16) + 1) == 0
    with pytest.raises(OutOfMemory, match="arena_bytes"):
        device.arena_address((1 << 16) + 1, 0)


def test_a_range_that_cannot_be_reserved_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigurationError, match="arena_bytes"):
        CpuDevice(arena_bytes=1 << 62, find=lambda: None)


def test_without_a_compiler_the_device_says_so_and_still_holds_memory(device: CpuDevice) -> None:
    assert device.info.dialect is None
    assert "no C compiler" in device.info.detail


@pytest.mark.parametrize("script", ["exit 1", "exit 0", "kill -KILL $$", "sleep 600"])
def test_with_a_compiler_that_does_not_work_the_device_says_so_and_is_as_without(script: str, tmp_path: Path) -> None:
    toolchain = replace(toolchain_in(tmp_path / "cache"), bounds=Bounds(wall_s=1.0))
    compiler = shell_program(tmp_path / "cc", script)
    device = CpuDevice(arena_bytes=1 << 16, find=lambda: replace(toolchain, compiler=str(compiler)))
    assert device.info.dialect is None
    assert f"{compiler} does not work, so NumPy runs programs op by op: " in device.info.detail
    device.close()


def test_a_folder_of_kernels_that_others_may_write_is_a_wrong_setting(tmp_path: Path) -> None:
    toolchain = toolchain_in(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigurationError, match=r"every user may write.*FUSEWIRE_CACHE_DIR"):
        CpuDevice(arena_bytes=1 << 16, find=lambda: toolchain)


# ---- plans ----


def _increment() -> KernelSource:
    """out = in + 1 along one dimension."""
    array = Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.UNIT,))
    one = Argument(ArgumentKind.SCALAR, dtypes.float32, ())
    nodes = (node("add", (0, 1), dtypes.float32),)
    return generate(LoopKernel(1, False, (array, one), nodes, (Store(2, array),)), "c")[0]


def test_a_plan_without_launches_does_nothing(toolchain: Toolchain) -> None:
    device = CpuDevice(find=lambda: toolchain)
    plan = device.load(Plan((), (), (ArenaColumn(),), 0, (), Cost(0, 0)), ())
    launch_slots(device, plan, [[0], [0]])


def test_a_file_that_lacks_a_kernel_is_a_fault(toolchain: Toolchain) -> None:
    device, source = CpuDevice(find=lambda: toolchain), _increment()
    (path,) = compile_kernels([source], toolchain)
    renamed = KernelSource("fw_elsewhere", source.text)
    with pytest.raises(ServerFault, match="fw_elsewhere"):
        device.load(Plan((renamed,), (), (ArenaColumn(),), 0, (), Cost(0, 0)), [path])


def test_a_file_that_cannot_be_loaded_is_a_fault(toolchain: Toolchain, tmp_path: Path) -> None:
    device, source = CpuDevice(find=lambda: toolchain), _increment()
    with pytest.raises(ServerFault, match="nowhere"):
        device.load(Plan((source,), (), (ArenaColumn(),), 0, (), Cost(0, 0)), [str(tmp_path / "nowhere.so")])


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's list of what is mapped")
def test_a_library_is_unloaded_after_the_last_plan_that_holds_it(tmp_path: Path) -> None:
    toolchain = toolchain_in(tmp_path)  # so that no other test has loaded the file
    device, source = CpuDevice(find=lambda: toolchain), _increment()
    (path,) = compile_kernels([source], toolchain)
    nothing = Plan((), (), (ArenaColumn(),), 0, (), Cost(0, 0))
    plans = [device.load(replace(nothing, kernels=(source,)), [path]) for _ in range(2)]
    for is_held in (True, False):
        plans.pop()
        gc.collect()
        device.load(nothing, ())
        assert (path in Path("/proc/self/maps").read_text(encoding="utf-8")) == is_held
