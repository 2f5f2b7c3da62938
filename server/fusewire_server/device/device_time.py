"""Sums up the device time of one order: spans between timed fences, by the device's own clock."""

from __future__ import annotations

from fusewire_kernels.devices.base import Device, TimedFence


class DeviceTime:
    """The time of one order. Device thread, until the order's last fence is reached; then whoever reports it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.last_fence: TimedFence | None = None  # the end of the last span
        self._began: TimedFence | None = None
        self._spans: list[tuple[TimedFence, TimedFence]] = []  # those whose ends may not be reached yet
        self._settled_ns = 0  # of the others

    def begin(self) -> None:
        """What the device is told from now on belongs to the order."""
        self._began = self._device.timed_fence()

    def end(self) -> None:
        """What the device is told from now on does not."""
        assert self._began is not None, "a span ends that has begun"
        self._settle()
        self.last_fence = self._device.timed_fence()
        self._spans.append((self._began, self.last_fence))
        self._began = None

    def total_ns(self) -> int:
        """All of it, once a fence after the last span is reached."""
        return self._settled_ns + sum(end.ns_since(began) for began, end in self._spans)

    def _settle(self) -> None:
        """Keeps few spans of an order that goes on for long: the device reaches them in order."""
        while self._spans and self._spans[0][1].is_reached():
            began, end = self._spans.pop(0)
            self._settled_ns += end.ns_since(began)
