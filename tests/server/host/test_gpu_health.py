"""The state of a GPU, read from a fake of NVML."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fusewire_server.host.gpu_health import Gpu, gpu_health


class FakeNvml:
    """Answers as pynvml for one GPU, but for what `untold` names. `asked` says which device was looked for."""

    NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = range(4)

    class NVMLError(Exception):
        """An error of the library."""

    def __init__(self, *untold: str, has_driver: bool = True) -> None:
        self.asked: object = None
        self._untold = untold
        self._has_driver = has_driver

    def nvmlInit(self) -> None:  # noqa: N802 - as NVML names it
        if not self._has_driver:
            raise self.NVMLError

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=75),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=1 << 30),
            "nvmlDeviceGetClockInfo": 1980,
            "nvmlDeviceGetTemperature": 41,
            "nvmlDeviceGetPowerUsage": 350_500,
            "nvmlDeviceGetTotalEccErrors": 2,
        }

        def answer(*arguments: object) -> Any:
            if name in self._untold:
                raise self.NVMLError
            if name.startswith("nvmlDeviceGetHandle"):
                self.asked = arguments[0]
            return answers.get(name)

        return answer


def test_a_gpu_tells_how_it_is() -> None:
    read = gpu_health({}, FakeNvml())
    assert read is not None
    assert read() == Gpu(0.75, 1 << 30, 1_980_000_000, 41, 350.5, 2)


def test_what_a_gpu_does_not_tell_is_nothing() -> None:
    read = gpu_health({}, FakeNvml("nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetPowerUsage"))
    assert read is not None
    received = read()
    assert (received.power_watts, received.errors) == (None, None)


@pytest.mark.parametrize(("visible", "asked"), [("", 0), ("3", 3), ("5,6", 5), ("GPU-abc", "GPU-abc")])
def test_the_gpu_is_the_first_one_that_the_process_sees(visible: str, asked: object) -> None:
    nvml = FakeNvml()
    gpu_health({"CUDA_VISIBLE_DEVICES": visible}, nvml)
    assert nvml.asked == asked


def test_without_the_driver_or_the_package_there_is_nothing_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu_health({}, FakeNvml(has_driver=False)) is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpu_health({}) is None
