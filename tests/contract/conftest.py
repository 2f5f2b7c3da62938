"""The devices that the contract is tested on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fusewire_kernels.devices.base import Device
from fusewire_kernels.devices.cpu import CpuDevice
from tests.contract.harness import Runner
from tests.contract.service import Service, serving


@pytest.fixture(scope="package", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """What runs programs, on each device."""
    device = _device(request.param)
    if device.info.dialect is None:
        pytest.skip("no C compiler")
    yield Runner(device)
    device.close()


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def backend(request: pytest.FixtureRequest) -> str:
    """What servers run on."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def served(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server process on each device."""
    with serving(backend, cache=tmp_path_factory.mktemp("cache")) as service:
        yield service


@pytest.fixture
def service(served: Service) -> Iterator[Service]:
    """The server, to which each test leaves nothing: neither sessions nor memory."""
    yield served
    served.wait_until_empty()


@pytest.fixture(scope="module")
def hasty(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that gives a submission so little time that it slices loops."""
    environment = {"FUSEWIRE_DEVICE__SUBMISSION_S": "0.0002"}
    with serving(backend, cache=tmp_path_factory.mktemp("cache"), environment=environment) as service:
        yield service


def _device(backend: str) -> Device:
    if backend == "cpu":
        return CpuDevice()
    from fusewire_kernels.devices.cuda.device import CudaDevice  # noqa: PLC0415 - needs CuPy and a GPU

    return CudaDevice()
