"""Chooses the device that a server runs on, and says why."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence

from fusewire_kernels.compile.binary_cache import check_writers, default_cache_folder
from fusewire_kernels.compile.dialect_compilers import compiler_of
from fusewire_kernels.compile.kernel_pack import KernelPack, find_c_pack, find_pack
from fusewire_kernels.devices.base import Device
from fusewire_kernels.devices.visible_gpus import VISIBLE, visible_gpus
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ConfigurationError, ServerFault
from fusewire_server.config.config import Device as DeviceConfig
from fusewire_server.config.config import Planner as PlannerConfig
from fusewire_server.config.settings import ALL_DEVICES, devices_text, numbers_in
from fusewire_server.device.unfused.one_ops import FindKernels
from fusewire_server.planning.planner import PlannerSettings

log = logging.getLogger("fusewire.backends")


def choose_device(config: DeviceConfig) -> Device:
    """The device of the configured backend. Raises ConfigurationError if it cannot be had."""
    match config.backend:
        case "auto":
            return _best_device(config)
        case "cpu":
            return _cpu(config, "as asked")
        case "cuda":
            return _cuda(config, "as asked")
    return _null()


def devices_of(config: DeviceConfig) -> Mapping[int, Mapping[str, str]] | None:
    """Returns the numbers of the devices that have an engine process each, with the environment of each process.

    None: the first device serves in this process. Raises ConfigurationError for a device that is not there.
    """
    if config.devices is None:
        return None
    gpus = visible_gpus(os.environ) if config.backend in {"auto", "cuda"} else ()
    if config.backend == "cuda" and not gpus:
        raise ConfigurationError(f"device.devices = {config.devices}: there is no CUDA device here")
    if config.devices == ALL_DEVICES:
        numbers: tuple[int, ...] = tuple(range(len(gpus) or 1))
    else:
        numbers = numbers_in(config.devices)
    # A processor may have any number of engines.
    count = len(gpus) or len(numbers)
    lacking = [number for number in numbers if number >= count]
    if lacking:
        text = f"there is no device {lacking[0]}; the devices are {devices_text(range(count))}"
        raise ConfigurationError(f"device.devices = {config.devices}: {text}")
    if numbers == (0,):
        return None
    return {number: {VISIBLE: gpus[number]} if gpus else {} for number in numbers}


def planner_settings(device: Device, config: PlannerConfig) -> PlannerSettings | None:
    """What the planner needs to know; None where nothing can be compiled.

    Raises ConfigurationError if others may write the folder of compiled kernels.
    """
    info = device.info
    if info.dialect is None or not info.has_compiler:
        log.warning("nothing can be compiled, so every program runs op by op: %s", info.detail)
        return None
    check_writers(default_cache_folder())
    processors = os.cpu_count() or 1
    return PlannerSettings(
        info.dialect,
        info.architecture,
        config.deadline_s,
        config.memory_bytes,
        urgent_workers=urgent_workers(processors),
        usual_workers=usual_workers(processors),
    )


def kernel_finder(device: Device) -> FindKernels | None:
    """Returns what looks for compiled kernels: in the pack, then in the cache. None if the device runs no kernels."""
    info = device.info
    if info.dialect is None:
        return None
    pack, find_cached = pack_of(device), _cache_finder(device)

    def find(sources: Sequence[KernelSource]) -> Sequence[str] | None:
        nonlocal pack
        pack = pack or pack_of(device)  # it may have been made since
        packed = None if pack is None else pack.find(sources)
        return find_cached(sources) if packed is None else packed

    return find


def pack_of(device: Device) -> KernelPack | None:
    """Returns the pack of kernels for a device, or None if there is none."""
    match device.info.dialect:
        case None:
            return None
        case "c":
            return find_c_pack()
        case dialect:
            return find_pack(dialect, device.info.architecture)


def _cache_finder(device: Device) -> FindKernels:
    """Returns what looks for kernels that a compiler of this machine has compiled before."""
    info = device.info
    if info.dialect is not None and info.has_compiler:
        try:
            find = compiler_of(info.dialect, info.architecture).find
            find(())  # looks for the compiler, which names the folder of what it has compiled
        except (ConfigurationError, ServerFault) as reason:
            log.warning("kernels that were compiled before are not looked for: %s", reason)
        else:
            return find
    return lambda sources: None


def urgent_workers(processors: int) -> int:
    """Returns how many workers make the one-op kernels that rows wait for: few, so that processors are left."""
    return min(max(processors // 4, 1), 4)


def usual_workers(processors: int) -> int:
    """Returns how many workers make the plans of whole programs. A new loop mostly brings two at the same time."""
    return 1 if processors < 8 else 2


def _best_device(config: DeviceConfig) -> Device:
    try:
        return _cuda(config, "the best there is")
    except ConfigurationError as reason:
        return _cpu(config, f"no CUDA device ({reason})")


def _cpu(config: DeviceConfig, why: str) -> Device:
    from fusewire_kernels.devices.cpu import CpuDevice  # noqa: PLC0415 - a backend is imported when chosen

    return CpuDevice(memory_bytes=config.memory_bytes, arena_bytes=config.arena_bytes, why=why, pack=find_c_pack())


def _cuda(config: DeviceConfig, why: str) -> Device:
    try:
        from fusewire_kernels.devices.cuda.device import CudaDevice  # noqa: PLC0415 - needs CuPy and a driver
    except ImportError as reason:
        raise ConfigurationError(f"device.backend = cuda needs CuPy: {reason}") from None
    return CudaDevice(memory_bytes=config.memory_bytes, arena_bytes=config.arena_bytes, why=why)


def _null() -> Device:
    from fusewire_kernels.devices.null import NullDevice  # noqa: PLC0415 - a backend is imported when chosen

    return NullDevice()
