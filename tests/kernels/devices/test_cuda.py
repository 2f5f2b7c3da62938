"""The GPU does what every device does, and what only it does."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.compile.cuda_compiler import CudaCompiler
from fusewire_kernels.devices import graph_cache
from fusewire_kernels.devices.base import Device
from fusewire_kernels.devices.graph_cache import USES_BEFORE
from fusewire_kernels.ir.kernel import Argument, ArgumentKind, LoopKernel, Store, Stride
from fusewire_kernels.plan.plan import ArenaColumn, Cost, InputColumn, Launch, OperandRef, OutputColumn, Plan
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.errors import ConfigurationError, OutOfMemory, ServerFault
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from tests.kernels.devices.conformance import ARENA_BYTES, MEMORY_BYTES, DeviceConformance, Machine
from tests.kernels.launching import launch_slots
from tests.kernels.loops_of_note import recurrent
from tests.kernels.problems import node

cupy: Any = pytest.importorskip("cupy", reason="needs CuPy", exc_type=ImportError)
cuda = pytest.importorskip("fusewire_kernels.devices.cuda.device", reason="needs CuPy", exc_type=ImportError)
page_locked: Any = pytest.importorskip(
    "fusewire_kernels.devices.cuda.page_locked", reason="needs CuPy", exc_type=ImportError
)
library_twins: Any = pytest.importorskip(
    "fusewire_kernels.devices.cuda.library_twins", reason="needs CuPy", exc_type=ImportError
)
modules: Any = pytest.importorskip("fusewire_kernels.devices.cuda.modules", reason="needs CuPy", exc_type=ImportError)
pytestmark = pytest.mark.gpu

# A kernel that writes where nothing is: every later answer of the device is an error.
FAULT = """
import cupy
from fusewire_kernels.devices.cuda.device import CudaDevice
from fusewire_protos.errors import ServerFault

device = CudaDevice(memory_bytes=1 << 20, arena_bytes=1 << 20)
device.allocate(1)
cupy.RawKernel('extern "C" __global__ void fault(int *p) { *p = 1; }', "fault")((1,), (1,), (cupy.intp(64),))
fence = device.fence()
for question in (fence.wait, fence.is_reached):
    try:
        question()
    except ServerFault as fault:
        print("fault:", fault, flush=True)
"""


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def machine(cache_folder: Path) -> Iterator[Machine]:
    device = cuda.CudaDevice(memory_bytes=MEMORY_BYTES, arena_bytes=ARENA_BYTES)
    compiler = CudaCompiler(device.info.architecture, cache_folder)
    yield Machine(device, lambda sources: compiler.compile(sources).paths)
    device.close()


@pytest.fixture
def device(machine: Machine) -> Device:
    return machine.device


class TestCudaDevice(DeviceConformance):
    """The tests that all devices share."""


def test_a_device_says_what_it_is(device: Device) -> None:
    info = device.info
    assert (info.backend, info.dialect, info.memory_bytes) == ("cuda", "cuda", MEMORY_BYTES)
    assert info.architecture.startswith("sm_")
    assert info.name
    assert all(word in info.detail for word in ("driver", "NVRTC", "CuPy"))


def test_memory_is_bounded_by_what_is_free_where_nothing_else_is_said() -> None:
    device = cuda.CudaDevice(arena_bytes=ARENA_BYTES)
    free_bytes, _ = cupy.cuda.runtime.memGetInfo()
    assert 1 << 30 < device.info.memory_bytes < free_bytes
    device.close()


def test_a_plan_is_refused_that_the_device_has_no_room_for_and_others_load_after_it(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def malloc(self, size_bytes: int) -> None:
            raise cupy.cuda.memory.OutOfMemoryError(size_bytes, 0)

    plan = Plan((), (), (ArenaColumn(),), 0, (), Cost(0, 0))
    with monkeypatch.context() as full:
        full.setattr(device, "_own_pool", Full())
        with pytest.raises(OutOfMemory, match="of its own beside those of values"):
            device.load(plan, ())
    assert device.load(plan, ()).plan is plan


def test_a_read_that_the_host_has_no_room_for_is_refused_and_others_come(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise cupy.cuda.runtime.CUDARuntimeError(modules.OUT_OF_MEMORY)

    block = device.allocate(4)
    device.write(block, memoryview(b"some"))
    with monkeypatch.context() as full:
        full.setattr("cupy.cuda.alloc_pinned_memory", refuse)
        with pytest.raises(MemoryError, match="page-locked"):
            device.read(block, 4)
    readback = device.read(block, 4)
    device.fence().wait()
    assert bytes(readback.data()) == b"some"


def test_a_large_upload_is_gathered_where_the_device_copies_from(device: Device) -> None:
    data = np.random.default_rng(3).bytes(page_locked.LEAST_BYTES)
    staged = device.stage(len(data))
    assert isinstance(staged.owner, page_locked.Lent)
    staged.memory[:] = data
    block = device.put(staged)
    readback = device.read(block, len(data))
    device.fence().wait()
    assert bytes(readback.data()) == data


def test_a_large_value_is_read_to_where_the_device_copies_by_itself(device: Device) -> None:
    data = np.random.default_rng(3).bytes(page_locked.LEAST_BYTES)
    block = device.allocate(len(data))
    device.write(block, memoryview(data))
    staged = device.stage(len(data))
    assert isinstance(staged.owner, page_locked.Lent)
    readback, memory = device.read_part(block, staged, slice(0, len(data))), staged.memory
    device.fence().wait()
    readback.data()
    assert bytes(memory) == data


def test_an_area_is_its_values_as_long_as_there_is_a_view_of_it(device: Device) -> None:
    views = [device.stage(page_locked.AREA_BYTES).memory for _ in range(2)]
    assert device.stage(page_locked.AREA_BYTES).owner is None
    del views
    assert device.stage(page_locked.AREA_BYTES).owner is not None


@pytest.mark.parametrize("size_bytes", ["LEAST_BYTES", "AREA_BYTES"])
def test_what_is_too_little_or_too_much_for_an_area_is_gathered_in_ordinary_memory(
    device: Device, size_bytes: str
) -> None:
    outside = {"LEAST_BYTES": page_locked.LEAST_BYTES - 1, "AREA_BYTES": page_locked.AREA_BYTES + 1}[size_bytes]
    assert device.stage(outside).owner is None


def test_an_area_is_one_uploads_until_that_lets_go_of_it() -> None:
    areas = page_locked.Areas()
    lent = [areas.lend(page_locked.AREA_BYTES) for _ in range(2)]
    assert len({each.page.address for each in lent if each is not None}) == 2
    assert areas.lend(page_locked.AREA_BYTES) is None
    freed = lent.pop()
    address = freed.page.address
    del freed
    assert areas.lend(page_locked.AREA_BYTES).page.address == address


def test_an_area_is_nobodys_until_the_device_has_its_bytes() -> None:
    class OnItsWay:
        def is_reached(self) -> bool:
            return has_arrived

    has_arrived, areas = False, page_locked.Areas()
    for lent in [areas.lend(page_locked.LEAST_BYTES) for _ in range(2)]:
        lent.page.fence = OnItsWay()
    del lent
    assert areas.lend(page_locked.LEAST_BYTES) is None
    has_arrived = True
    assert areas.lend(page_locked.LEAST_BYTES) is not None


def _transform(device: Device, points: int) -> None:
    spec = Spec(dtypes.float32, (points,))
    blocks = [device.allocate(size) for size in (spec.size_bytes, spec.size_bytes, 2 * spec.size_bytes)]
    addresses = [block.address for block in blocks]
    try:
        device.library_twin(OneOpCall(BY_NAME["fft"], (spec, spec), (False,)))(addresses[:2], addresses[2], ())
    finally:
        device.fence().wait()
        for block in blocks:
            device.release(block)


def test_plans_of_transforms_keep_little_memory(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_bytes, plans = 1 << 18, cupy.fft.config.get_plan_cache()
    monkeypatch.setattr(library_twins, "_KEPT_BYTES", kept_bytes)
    for points in (1 << 14, 1009, 1 << 15, 3 << 14, 1 << 16, 1 << 14):
        _transform(device, points)
        assert plans.get_curr_memsize() <= kept_bytes


def test_a_transform_that_the_device_has_no_memory_for_is_refused_and_others_follow(device: Device) -> None:
    with pytest.raises(OutOfMemory, match="no memory to compute fft"):
        _transform(device, MEMORY_BYTES // 20)
    _transform(device, 1 << 10)


def test_an_arena_that_cannot_be_reserved_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigurationError, match=r"device\.arena_bytes"):
        cuda.CudaDevice(arena_bytes=1 << 50)


def test_another_thread_may_take_a_device_over(device: Device) -> None:
    results: list[bytes] = []

    def use() -> None:
        block = device.allocate(4)
        device.write(block, memoryview(np.int32(7).tobytes()))
        readback = device.read(block, 4)
        device.fence().wait()
        results.append(bytes(readback.data()))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(30)
    assert results == [np.int32(7).tobytes()]


def test_a_fence_is_waited_for_in_another_thread(device: Device) -> None:
    device.write(device.allocate(1 << 24), memoryview(bytes(1 << 24)))
    fence = device.fence()
    thread = threading.Thread(target=fence.wait)
    thread.start()
    thread.join(30)
    assert fence.is_reached()


def test_a_file_that_is_no_kernel_is_a_fault(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "bad.cubin"
    path.write_bytes(b"not machine code")
    with pytest.raises(ServerFault, match=r"bad\.cubin"):
        modules.load_module(str(path))


def test_a_device_beyond_use_says_so_at_every_question() -> None:
    found = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, timeout=50, check=False)
    assert found.stdout.count("fault:") == 2, found.stderr
    assert "cudaErrorIllegalAddress" in found.stdout


def test_a_module_is_unloaded_once_the_device_is_past_the_last_plan_that_holds_it(machine: Machine) -> None:
    device: Any = machine.device
    plan = _negation()
    x, y = device.allocate(4000), device.allocate(4000)
    device.write(x, np.ones(1000, np.float32).data)
    nothing = Plan((), (), (ArenaColumn(),), 0, (), Cost(0, 0))
    binaries = machine.compile(plan.kernels)
    for _ in range(2):
        loaded = device.load(plan, binaries)
        launch_slots(device, loaded, [[0, x.address, y.address]])
        del loaded
        gc.collect()
        device.load(nothing, ())
        result = device.read(y, 4000)
        device.fence().wait()
        device.load(nothing, ())
        assert not device._modules.take_unheld()
        assert not device._retirement._retired
        assert (np.frombuffer(result.data(), np.float32) == -1).all()


def test_one_graph_serves_several_numbers_of_rows(machine: Machine) -> None:
    device: Any = machine.device
    plan = _negation()
    loaded = device.load(plan, machine.compile(plan.kernels))
    (iterations, *_) = loaded.graphs.sizes
    x = [device.allocate(4000) for _ in range(8)]
    y = [device.allocate(4000) for _ in range(8)]
    for number, block in enumerate(x):
        device.write(block, np.full(1000, number, np.float32).data)

    def negated(rows: int) -> list[float]:
        """Runs the loop for so many rows. Returns an element of each of the 8 results."""
        for block in y:
            device.write(block, np.ones(1000, np.float32).data)
        table = np.zeros((iterations, rows, 3), np.int64)
        table[:, :, 1] = [block.address for block in x[:rows]]
        table[:, :, 2] = [block.address for block in y[:rows]]
        device.launch(loaded, table, (iterations,) * rows)
        results = [device.read(block, 4000) for block in y]
        device.fence().wait()
        return [float(np.frombuffer(result.data(), np.float32)[999]) for result in results]

    def expected(rows: int) -> list[float]:
        return [-float(number) if number < rows else 1.0 for number in range(8)]

    for _ in range(USES_BEFORE + 1):
        assert negated(7) == expected(7)
    device._graphs._thread.submit(lambda: None).result(30)  # behind the capture
    for rows in (7, 8, 7):
        assert negated(rows) == expected(rows)
    assert loaded.launch_counts.captured == 1


def test_a_graph_that_was_evicted_and_captured_again_gives_the_same_bytes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_cache, "MOST_GRAPHS", 1)
    device: Any = machine.device
    x, y = device.allocate(4000), device.allocate(4000)
    device.write(x, np.random.default_rng(0).standard_normal(1000).astype(np.float32).data)
    plans = [_pointwise("sigmoid"), _pointwise("tanh")]
    first, second = [device.load(plan, machine.compile(plan.kernels)) for plan in plans]

    def runs(loaded: Any) -> set[bytes]:
        """Runs a loop until its graph has been captured, and once more. Returns the different results."""
        (iterations, *_) = loaded.graphs.sizes
        table = np.full((iterations, 1, 3), [[0, x.address, y.address]], np.int64)
        results: set[bytes] = set()
        for _ in range(USES_BEFORE + 3):
            device.write(y, np.ones(1000, np.float32).data)
            device.launch(loaded, table, (iterations,))
            read = device.read(y, 4000)
            device.fence().wait()
            results.add(bytes(read.data()))
            device._graphs._thread.submit(lambda: None).result(30)  # behind a capture
        return results

    before, between, after = runs(first), runs(second), runs(first)
    assert len(before) == len(between) == 1
    assert after == before != between
    assert (first.launch_counts.captured, first.launch_counts.evicted) == (2, 1)
    assert (second.launch_counts.captured, second.launch_counts.evicted) == (1, 1)


def test_how_many_rows_of_clusters_a_launch_has_depends_on_the_device(machine: Machine) -> None:
    plan = build_plan(recurrent(64, 256), "cuda")
    launch = plan.persistent
    assert launch is not None
    found = machine.device.load(plan, machine.compile(plan.kernels)).persistent
    attributes = cupy.cuda.Device().attributes
    if int(machine.device.info.architecture.removeprefix("sm_")) < 90:
        assert found is None
        return
    blocks = launch.blocks // launch.clusters
    assert 1 <= found.most_rows <= launch.most_rows(attributes["MultiProcessorCount"] // blocks)


def _negation() -> Plan:
    return _pointwise("negative")


def _pointwise(op: str) -> Plan:
    """A plan of one launch: an op on 1,000 elements, from the block of column 1 to that of column 2."""
    array = Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.UNIT,))
    nodes = (node(op, (0,), dtypes.float32),)
    (source,) = generate(LoopKernel(1, False, (array,), nodes, (Store(1, array),)), "cuda")
    launch = Launch(0, (1000,), ((OperandRef(1, 0), OperandRef(2, 0)),))
    return Plan((source,), (launch,), (ArenaColumn(), InputColumn(0), OutputColumn(0)), 0, (), Cost(0, 0))
