"""Reads how a GPU is, by NVIDIA's library NVML, where the package nvidia-ml-py is installed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fusewire_server.figures import Described, gauge, greatest

# What CUDA numbers its devices by is in this variable; NVML knows all of the machine.
_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Gpu(Described):
    """The GPU, as NVML tells it. Null where it does not, or where nvidia-ml-py is not installed."""

    utilization_ratio: float | None = gauge("gpu_utilization_ratio", join=greatest, default=None)
    """Share of the last moments in which some kernel ran."""
    memory_used_bytes: int | None = gauge("gpu_memory_used_bytes", default=None)
    """Bytes of the GPU's memory that all processes use."""
    clock_hertz: int | None = gauge("gpu_clock_hertz", join=greatest, default=None)
    """Clock of the multiprocessors."""
    temperature_celsius: int | None = gauge("gpu_temperature_celsius", join=greatest, default=None)
    """Temperature of the GPU."""
    power_watts: float | None = gauge("gpu_power_watts", default=None)
    """Power that the GPU takes."""
    errors: int | None = gauge("gpu_memory_errors", default=None)
    """Number of errors of the GPU's memory that could not be corrected, since its driver was loaded."""


ReadHealth = Callable[[], Gpu]


def gpu_health(environment: Mapping[str, str] = os.environ, nvml: Any = None) -> ReadHealth | None:
    """Returns what reads the state of this process's GPU; None without NVML. A reading may take some milliseconds.

    `nvml` is the module pynvml by default. Any thread may read.
    """
    try:
        nvml = nvml or importlib.import_module("pynvml")
        nvml.nvmlInit()
        device = _device(nvml, environment.get(_VISIBLE, "").partition(",")[0].strip())
    except ImportError:
        return None
    except nvml.NVMLError:
        return None
    return lambda: _read(nvml, device)


def _device(nvml: Any, visible: str) -> Any:
    """Returns the first device that is visible, which a number or an id names."""
    if visible and not visible.isdigit():
        return nvml.nvmlDeviceGetHandleByUUID(visible)
    return nvml.nvmlDeviceGetHandleByIndex(int(visible or 0))


def _read(nvml: Any, device: Any) -> Gpu:
    def answer(question: Callable[[], Any]) -> Any:
        """Returns an answer, or None: not every GPU tells everything."""
        try:
            return question()
        except nvml.NVMLError:
            return None

    errors = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    return Gpu(
        answer(lambda: nvml.nvmlDeviceGetUtilizationRates(device).gpu / 100),
        answer(lambda: int(nvml.nvmlDeviceGetMemoryInfo(device).used)),
        answer(lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM) * 1_000_000),
        answer(lambda: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU)),
        answer(lambda: nvml.nvmlDeviceGetPowerUsage(device) / 1000),
        answer(lambda: nvml.nvmlDeviceGetTotalEccErrors(device, *errors)),
    )
