"""Which device is chosen, and what it is announced with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import pytest

from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE
from fusewire_kernels.devices.cpu import CpuDevice
from fusewire_kernels.devices.null import NullDevice
from fusewire_protos.errors import ConfigurationError
from fusewire_server import backends
from fusewire_server.backends import choose_device, planner_settings, urgent_workers, usual_workers
from fusewire_server.config.config import Device, Planner
from fusewire_server.config.settings import MIB


def settings(backend: str) -> Device:
    return Device(backend=backend, arena_bytes=MIB)


def test_without_a_cuda_device_the_cpu_is_chosen_and_its_detail_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise ConfigurationError("there is no driver")

    monkeypatch.setattr(backends, "_cuda", refuse)
    info = choose_device(settings("auto")).info
    assert info.backend == "cpu"
    assert info.detail.startswith("no CUDA device (there is no driver); ")


def test_with_a_cuda_device_it_is_chosen_and_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    device, reasons = NullDevice(), []

    def choose(_: Device, why: str) -> NullDevice:
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


def test_the_planner_is_told_its_bounds() -> None:
    device = choose_device(settings("cpu"))
    if device.info.dialect is None:
        pytest.skip("needs a compiler")
    told = planner_settings(device, Planner(deadline_s=3.0, memory_bytes=5 * MIB))
    assert told is not None
    assert (told.dialect, told.deadline_s, told.memory_bytes) == (device.info.dialect, 3.0, 5 * MIB)


def test_a_planner_keeps_no_kernels_where_others_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = choose_device(settings("cpu"))
    if device.info.dialect is None:
        pytest.skip("needs a compiler")
    tmp_path.chmod(0o777)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with pytest.raises(ConfigurationError, match=rf"every user may write {tmp_path}.*{CACHE_VARIABLE}"):
        planner_settings(device, Planner())


@pytest.mark.parametrize(("processors", "workers"), [(1, 1), (2, 1), (8, 2), (16, 4), (128, 4)])
def test_a_quarter_of_the_processors_and_at_most_four_make_what_rows_wait_for(processors: int, workers: int) -> None:
    assert urgent_workers(processors) == workers


@pytest.mark.parametrize(("processors", "workers"), [(1, 1), (4, 1), (8, 2), (128, 2)])
def test_where_there_are_processors_two_workers_plan_whole_programs(processors: int, workers: int) -> None:
    assert usual_workers(processors) == workers
