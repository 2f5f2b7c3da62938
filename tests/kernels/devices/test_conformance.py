"""The CPU does what every device does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fusewire_kernels.compile.c_compiler import Toolchain, compile_kernels
from fusewire_kernels.devices.cpu import CpuDevice
from tests.kernels.devices.conformance import ARENA_BYTES, MEMORY_BYTES, DeviceConformance, Machine
from tests.kernels.problems import toolchain_in


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return toolchain_in(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def machine(toolchain: Toolchain) -> Iterator[Machine]:
    device = CpuDevice(memory_bytes=MEMORY_BYTES, arena_bytes=ARENA_BYTES, find=lambda: toolchain)
    yield Machine(device, lambda sources: compile_kernels(sources, toolchain))
    device.close()


class TestCpuDevice(DeviceConformance):
    """The tests that all devices share."""
