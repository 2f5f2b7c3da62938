"""Packs are made of all listed calls. Their kernels give the bytes of kernels compiled for this machine."""

from __future__ import annotations

import platform
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from fusewire_kernels import packing
from fusewire_kernels.build import build_plan
from fusewire_kernels.compile.c_compiler import Toolchain, compile_kernels, find_compiler
from fusewire_kernels.compile.kernel_pack import find_pack, write_pack
from fusewire_kernels.compile.processor import level_of
from fusewire_kernels.devices.base import Block
from fusewire_kernels.devices.cpu import CpuDevice, runtime_source
from fusewire_kernels.packing import kernels_of_all_calls, make_c_pack
from fusewire_kernels.plan.plan import KernelSource
from fusewire_kernels.unfused.all_calls import all_calls
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.errors import ConfigurationError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Category
from fusewire_protos.ops.shapes import Spec
from tests.kernels.launching import RowSlots, launch_rows
from tests.kernels.problems import toolchain_in
from tests.strategies import Array, random_array

_CALLS = 120
_LENGTHS = {1: 1, 2: 67, 4: 36}  # in place of the lengths of the listed calls, so that loops over vectors run too
_MOST_ELEMENTS = 1 << 16
_GROWING = (Category.POINTWISE, Category.REDUCTION, Category.PRODUCT)

MACHINE = platform.machine()
ADD = OneOpCall(BY_NAME["add"], (Spec(dtypes.float32, (2,)),) * 2, ())
EXP = OneOpCall(BY_NAME["exp"], (Spec(dtypes.float32, (2,)),), ())


@pytest.fixture
def two_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs are of these calls alone."""
    monkeypatch.setattr(packing, "all_calls", lambda: iter((ADD, EXP)))


@pytest.fixture
def level() -> str:
    """The level of kernels for this processor; skips the test if there are none."""
    found = level_of(MACHINE, Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    if found is None or find_compiler() is None:
        pytest.skip("needs a C compiler, and a processor that runs packs")
    return found


class _Progress:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def __call__(self, done: int, of: int) -> None:
        self.seen.append((done, of))


def _plan_sources(*calls: OneOpCall) -> list[KernelSource]:
    return [source for call in calls for source in build_plan(call.program(), "c", most_rows=1).kernels]


# ---- making ----


@pytest.mark.usefixtures("two_calls")
def test_a_pack_has_the_kernels_of_all_calls_and_what_launches_them(tmp_path: Path, level: str) -> None:
    progress = _Progress()
    assert make_c_pack([tmp_path], MACHINE, progress) == tmp_path / f"c-{level}"
    pack = find_pack("c", level, [tmp_path])
    assert pack is not None
    assert pack.find([*_plan_sources(ADD, EXP), runtime_source()]) is not None
    assert progress.seen == [(2, 2)]


@pytest.mark.usefixtures("two_calls", "level")
def test_what_the_package_holds_is_not_made_for_the_cache(tmp_path: Path) -> None:
    package, cache = tmp_path / "package", tmp_path / "cache"
    make_c_pack([package], MACHINE, _Progress())
    progress = _Progress()
    assert make_c_pack([package, cache], MACHINE, progress) is None
    assert progress.seen == []
    assert not cache.exists()


@pytest.mark.usefixtures("two_calls")
def test_a_pack_that_lacks_kernels_is_made_anew(tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_c_pack([tmp_path], MACHINE, _Progress())
    monkeypatch.setattr(packing, "all_calls", lambda: iter((ADD, OneOpCall(BY_NAME["log"], EXP.operands, ()))))
    assert make_c_pack([tmp_path], MACHINE, _Progress()) is not None
    pack = find_pack("c", level, [tmp_path])
    assert pack is not None
    assert pack.find(_plan_sources(EXP)) is None


def test_there_is_no_pack_for_other_machines(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no packs.*riscv64.*x86_64"):
        make_c_pack([tmp_path], "riscv64", _Progress())


@pytest.mark.usefixtures("two_calls")
def test_a_pack_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "find_compiler", lambda *_, **__: None)
    with pytest.raises(ConfigurationError, match="there is none"):
        make_c_pack([tmp_path], "x86_64", _Progress())


@pytest.mark.usefixtures("two_calls")
def test_of_a_cuda_kernel_there_is_the_source_of_each_class_of_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    total = OneOpCall(BY_NAME["sum"], (Spec(dtypes.float32, (2, 2)),), ((1,), False))
    monkeypatch.setattr(packing, "all_calls", lambda: iter((total,)))
    packed = kernels_of_all_calls("cuda")
    for length in (2, 70, 3000, 60_000):
        longer = total._replace(operands=(Spec(dtypes.float32, (300, length)),))
        assert {*build_plan(longer.program(), "cuda", most_rows=1).kernels} <= {*packed}


# ---- a machine without a compiler ----


@pytest.mark.usefixtures("two_calls")
def test_a_device_without_a_compiler_runs_the_kernels_of_a_pack(tmp_path: Path, level: str) -> None:
    make_c_pack([tmp_path], MACHINE, _Progress())
    pack = find_pack("c", level, [tmp_path])
    assert pack is not None
    device = CpuDevice(find=lambda: None, pack=pack)
    assert (device.info.dialect, device.info.has_compiler) == ("c", False)
    assert "no C compiler found: kernels that came with Fusewire run" in device.info.detail
    plan = build_plan(ADD.program(), "c", most_rows=1)
    files = pack.find(plan.kernels)
    assert files is not None
    numbers = np.array([1, 2], np.float32)
    assert np.frombuffer(_result(device, ADD, files, [numbers, numbers]), np.float32).tolist() == [2, 4]


def test_a_pack_that_does_not_load_counts_as_absent(tmp_path: Path) -> None:
    library = tmp_path / "compiled.so"
    library.write_bytes(b"for another system")
    write_pack(tmp_path, "c", "x86-64-v3", {runtime_source(): str(library)})
    device = CpuDevice(find=lambda: None, pack=find_pack("c", "x86-64-v3", [tmp_path]))
    assert device.info.dialect is None
    assert "NumPy runs programs op by op" in device.info.detail


# ---- bytes ----


@pytest.fixture(params=["gcc", "clang"])
def native(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolchain:
    """A compiler for this machine's own processor."""
    path = shutil.which(request.param)
    if path is None:
        pytest.skip(f"no {request.param}")
    monkeypatch.setenv("CC", path)
    return toolchain_in(tmp_path / request.param)


@pytest.mark.slow
def test_packed_kernels_give_the_bytes_of_native_ones(
    native: Toolchain, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC")
    packed = find_compiler(tmp_path / "packed", level=level)
    assert packed is not None
    calls = [*_sampled()]
    results = [[*_results(calls, toolchain)] for toolchain in (packed, native)]
    different = [call for call, *each in zip(calls, *results, strict=True) if each[0] != each[1]]
    assert different == []


def _sampled() -> Iterator[OneOpCall]:
    """Some of the listed calls, and some of each category, over longer arrays if they compute."""
    by_category: dict[Category, list[OneOpCall]] = {}
    for call in all_calls():
        by_category.setdefault(call.op.category, []).append(call)
    chosen = random.Random(7)
    for category, calls in by_category.items():
        share = _CALLS // 2 if category is Category.POINTWISE else _CALLS // 2 // (len(by_category) - 1)
        for call in chosen.sample(calls, share):
            longer = _grown(call) if category in _GROWING else call
            yield longer if longer.operands and longer.operands[0].elements <= _MOST_ELEMENTS else call


def _grown(call: OneOpCall) -> OneOpCall:
    rank = max(len(spec.shape) for spec in call.operands)
    last = rank - 1 if call.op.category is Category.POINTWISE else 0  # the first of the axes that grow

    def grown(spec: Spec) -> Spec:
        first = last - rank + len(spec.shape)
        return Spec(
            spec.dtype,
            tuple([_LENGTHS.get(dim, dim) if axis >= first else dim for axis, dim in enumerate(spec.shape)]),
        )

    return call._replace(operands=tuple(map(grown, call.operands)))


def _results(calls: Sequence[OneOpCall], toolchain: Toolchain) -> Iterator[bytes]:
    plans = [build_plan(call.program(), "c", most_rows=1) for call in calls]
    paths = iter(compile_kernels([source for plan in plans for source in plan.kernels], toolchain))
    files = [[next(paths) for _ in plan.kernels] for plan in plans]
    device = CpuDevice(find=lambda: toolchain)
    for number, (call, binaries) in enumerate(zip(calls, files, strict=True)):
        values = np.random.default_rng(number)
        operands = [random_array(values, spec, special_share=0.125, is_moderate=False) for spec in call.operands]
        yield _result(device, call, binaries, operands)


def _result(device: CpuDevice, call: OneOpCall, files: Sequence[str], operands: Sequence[Array]) -> bytes:
    plan = build_plan(call.program(), "c", most_rows=1)
    loaded = device.load(plan, files)
    blocks = [_block_of(device, np.ascontiguousarray(operand)) for operand in operands]
    spec = call.result()
    result = device.allocate(max(spec.size_bytes, 1))
    starts = (0,) * call.op.starts(call.attributes)
    row = RowSlots([block.address for block in blocks], (result.address,), (), starts)
    launch_rows(device, loaded, [row])
    found = bytes(device.read(result, spec.size_bytes).data())
    for block in (*blocks, result):
        device.release(block)
    return found


def _block_of(device: CpuDevice, operand: Array) -> Block:
    block = device.allocate(max(operand.nbytes, 1))
    if operand.nbytes:
        device.write(block, operand.reshape(-1).view(np.uint8).data)
    return block
