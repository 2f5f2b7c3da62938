"""A large value, read in pieces of seven bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fusewire_kernels.devices.base import Block, Device
from fusewire_kernels.devices.cpu import CpuDevice
from fusewire_kernels.devices.null import NullDevice
from fusewire_server.device.large_read import LargeRead

DEVICES: dict[str, Callable[[], Device]] = {"host": lambda: CpuDevice(find=lambda: None), "not the host": NullDevice}


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire_server.device.large_read.PIECE_BYTES", 7)


def block_of(device: Device, data: bytes) -> Block:
    block = device.allocate(len(data))
    device.write(block, memoryview(data))
    return block


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("size_bytes", [0, 6, 7, 8, 100])
def test_all_of_a_value_is_read(kind: str, size_bytes: int) -> None:
    device = DEVICES[kind]()
    data = bytes(range(size_bytes))
    copy = LargeRead(device, block_of(device, data), size_bytes)
    while not copy.is_over:
        assert copy.go_on()
    assert bytes(copy.data()) == data


def test_it_goes_on_when_what_is_on_its_way_has_come() -> None:
    device = NullDevice(completes_by_itself=False)
    copy = LargeRead(device, block_of(device, bytes(range(20))), 20)
    for _ in range(3):
        assert not copy.go_on()
        assert not copy.is_over
        assert device.complete_next()
        assert copy.go_on()
    assert copy.is_over
    assert bytes(copy.data()) == bytes(range(20))


def test_the_device_has_the_next_piece_before_the_first_has_come() -> None:
    device = NullDevice(completes_by_itself=False)
    copy = LargeRead(device, block_of(device, bytes(100)), 100)
    assert not copy.go_on()
    assert [device.complete_next() for _ in range(3)] == [True, True, False]


def test_cut_short_it_is_over_when_what_is_on_its_way_has_come() -> None:
    device = NullDevice(completes_by_itself=False)
    copy = LargeRead(device, block_of(device, bytes(100)), 100)
    copy.go_on()
    copy.cut_short()
    for _ in range(2):
        assert not copy.is_over
        assert device.complete_next()
        assert copy.go_on()
    assert copy.is_over
