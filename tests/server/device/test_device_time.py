"""What an order is charged of the device."""

from __future__ import annotations

from fusewire_kernels.devices.null import NullDevice
from fusewire_server.device.device_time import DeviceTime


def spend(device: NullDevice, device_time: DeviceTime, ns: int) -> None:
    with device_time:
        device.clock_ns += ns


def test_only_what_lies_within_a_span_counts() -> None:
    device = NullDevice()
    device_time = DeviceTime(device)
    spend(device, device_time, 5)
    device.clock_ns += 100  # somebody else's
    spend(device, device_time, 7)
    assert device_time.total_ns() == 12


def test_an_order_of_many_spans_keeps_those_alone_that_the_device_has_not_reached() -> None:
    device = NullDevice()
    device_time = DeviceTime(device)
    for _ in range(1000):
        spend(device, device_time, 1)
    assert len(device_time._spans) == 1
    assert device_time.total_ns() == 1000


def test_nothing_told_takes_no_time() -> None:
    assert DeviceTime(NullDevice()).total_ns() == 0
