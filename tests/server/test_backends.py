"""Which device is chosen, and what it is announced with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import pytest

from fusewire_kernels.compile import kernel_pack
from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE
from fusewire_kernels.compile.dialect_compilers import compiler_of
from fusewire_kernels.compile.kernel_pack import write_pack
from fusewire_kernels.devices.base import Device, DeviceInfo
from fusewire_kernels.devices.cpu import CpuDevice
from fusewire_kernels.devices.null import NullDevice
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ConfigurationError
from fusewire_server import backends
from fusewire_server.backends import (
    choose_device,
    devices_of,
    kernel_finder,
    planner_settings,
    urgent_workers,
    usual_workers,
)
from fusewire_server.config.config import Device as DeviceConfig
from fusewire_server.config.config import Planner
from fusewire_server.config.settings import MIB


def settings(backend: str) -> DeviceConfig:
    return DeviceConfig(backend=backend, arena_bytes=MIB)


def test_without_a_cuda_device_the_cpu_is_chosen_and_its_detail_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise ConfigurationError("there is no driver")

    monkeypatch.setattr(backends, "_cuda", refuse)
    info = choose_device(settings("auto")).info
    assert info.backend == "cpu"
    assert info.detail.startswith("no CUDA device (there is no driver); ")


def test_with_a_cuda_device_it_is_chosen_and_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    device, reasons = NullDevice(), []

    def choose(_: DeviceConfig, why: str) -> NullDevice:
        reasons.append(why)
        return device

    monkeypatch.setattr(backends, "_cuda", choose)
    assert choose_device(settings("auto")) is choose_device(settings("cuda")) is device
    assert reasons == ["the best there is", "as asked"]


def test_the_cpu_may_be_asked_for() -> None:
    info = choose_device(settings("cpu")).info
    assert (info.backend, info.detail.partition(";")[0]) == ("cpu", "as asked")


def test_cuda_without_its_libraries_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fusewire_kernels.devices.cuda", None)
    with pytest.raises(ConfigurationError, match=r"device\.backend = cuda needs CuPy"):
        choose_device(settings("cuda"))


def test_where_nothing_can_be_compiled_there_is_no_planner() -> None:
    device = CpuDevice(arena_bytes=MIB, find=lambda: None)
    assert planner_settings(device, Planner()) is None


def test_a_pack_of_kernels_does_not_make_a_planner() -> None:
    class Packed(NullDevice):
        @property
        def info(self) -> DeviceInfo:
            return super().info._replace(dialect="c")

    assert planner_settings(Packed(), Planner()) is None


@pytest.fixture
def packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache's packs, empty. The package has none."""
    monkeypatch.setattr(kernel_pack, "PACKAGE_FOLDER", tmp_path / "package")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path / "packs"


@pytest.fixture
def compiling() -> Device:
    """A device with a compiler; skips the test if there is none."""
    device = choose_device(settings("cpu"))
    if not device.info.has_compiler:
        pytest.skip("needs a compiler")
    return device


def compiled_in(packs: Path, source: KernelSource) -> Path:
    """Makes a pack for an architecture; returns its one file."""
    library = packs.parent / "compiled.cubin"
    library.write_bytes(b"machine code")
    folder = write_pack(packs, "cuda", "sm_90", {source: str(library)})
    (file,) = folder.glob("*.cubin")
    return file


class Cuda(NullDevice):
    """A device whose kernels lie in a pack alone."""

    @property
    def info(self) -> DeviceInfo:
        return super().info._replace(dialect="cuda", architecture="sm_90")


def test_kernels_are_found_in_the_pack_for_the_device(packs: Path) -> None:
    source = KernelSource("fw_test", "some text")
    file = compiled_in(packs, source)
    find = kernel_finder(Cuda())
    assert find is not None
    assert find([source]) == (str(file),)
    assert find([source._replace(text="another text")]) is None


@pytest.mark.usefixtures("packs")
def test_kernels_are_found_in_the_cache_too(compiling: Device) -> None:
    source = KernelSource("fw_test", "int fw_test(void) { return 1; }")
    find = kernel_finder(compiling)
    assert find is not None
    assert find([source]) is None
    compiled = compiler_of("c", "").compile([source])
    assert find([source]) == compiled.paths


def test_a_device_without_kernels_looks_for_none() -> None:
    assert kernel_finder(NullDevice()) is None


@pytest.mark.usefixtures("packs")
def test_a_pack_where_others_may_write_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigurationError, match=rf"every user may write {tmp_path}"):
        choose_device(settings("cpu"))


def test_the_planner_is_told_its_bounds(compiling: Device) -> None:
    bounds = planner_settings(compiling, Planner(deadline_s=3.0, memory_bytes=5 * MIB))
    assert bounds is not None
    assert (bounds.dialect, bounds.deadline_s, bounds.memory_bytes) == (compiling.info.dialect, 3.0, 5 * MIB)


def test_a_planner_keeps_no_kernels_where_others_may_write(
    compiling: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with pytest.raises(ConfigurationError, match=rf"every user may write {tmp_path}.*{CACHE_VARIABLE}"):
        planner_settings(compiling, Planner())


@pytest.mark.parametrize(("processors", "workers"), [(1, 1), (2, 1), (8, 2), (16, 4), (128, 4)])
def test_a_quarter_of_the_processors_and_at_most_four_make_what_rows_wait_for(processors: int, workers: int) -> None:
    assert urgent_workers(processors) == workers


@pytest.mark.parametrize(("processors", "workers"), [(1, 1), (4, 1), (8, 2), (128, 2)])
def test_where_there_are_processors_two_workers_plan_whole_programs(processors: int, workers: int) -> None:
    assert usual_workers(processors) == workers


def gpus(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Lets there be GPUs that `CUDA_VISIBLE_DEVICES` names so."""
    monkeypatch.setattr(backends, "visible_gpus", lambda _: names)


@pytest.mark.parametrize("backend", ["auto", "cpu", "null"])
def test_a_processor_has_as_many_devices_as_are_named(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch)
    assert devices_of(DeviceConfig(backend=backend, devices="0,1,2")) == {0: {}, 1: {}, 2: {}}
    assert devices_of(DeviceConfig(backend=backend, devices="1,0")) == {1: {}, 0: {}}


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_each_gpu_is_the_only_one_that_its_process_sees(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, "4", "GPU-aa", "6")
    seen = {number: {"CUDA_VISIBLE_DEVICES": name} for number, name in enumerate(("4", "GPU-aa", "6"))}
    assert devices_of(DeviceConfig(backend=backend, devices="all")) == seen
    assert devices_of(DeviceConfig(backend=backend, devices="0,2")) == {0: seen[0], 2: seen[2]}
    assert devices_of(DeviceConfig(backend=backend, devices="1")) == {1: seen[1]}


@pytest.mark.parametrize(("devices", "names"), [(None, ("0", "1")), ("0", ("0", "1")), ("all", ("0",)), ("all", ())])
def test_the_first_device_alone_is_served_in_this_process(
    devices: str | None, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(monkeypatch, *names)
    assert devices_of(DeviceConfig(backend="auto", devices=devices)) is None


@pytest.mark.parametrize(
    ("backend", "devices", "reason"),
    [
        ("cuda", "0,2", "there is no device 2; the devices are 0,1"),
        ("auto", "5", "there is no device 5; the devices are 0,1"),
        ("cpu", "1", "there is no device 1; the devices are 0"),
        ("cpu", "0,2", "there is no device 2; the devices are 0,1"),
    ],
)
def test_a_device_that_is_not_there_is_refused(
    backend: str, devices: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(monkeypatch, "0", "1")
    with pytest.raises(ConfigurationError, match=f"^device.devices = {devices}: {reason}$"):
        devices_of(DeviceConfig(backend=backend, devices=devices))


def test_devices_of_cuda_need_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch)
    with pytest.raises(ConfigurationError, match="there is no CUDA device here"):
        devices_of(DeviceConfig(backend="cuda", devices="all"))
