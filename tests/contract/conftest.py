"""The devices that the contract is tested on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fusewire_kernels.devices.base import Device
from fusewire_kernels.devices.cpu import CpuDevice
from tests.contract.harness import Runner


@pytest.fixture(scope="package", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """What runs programs, on each device."""
    device = _device(request.param)
    if device.info.dialect is None:
        pytest.skip("no C compiler")
    yield Runner(device)
    device.close()


def _device(backend: str) -> Device:
    if backend == "cpu":
        return CpuDevice()
    from fusewire_kernels.devices.cuda import CudaDevice  # noqa: PLC0415 - needs CuPy and a GPU

    return CudaDevice()
