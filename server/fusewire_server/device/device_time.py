"""Sums up the device time of one order from pairs of timed fences, by the device's own clock."""

from __future__ import annotations

from fusewire_kernels.devices.base import Device, TimedFence


class DeviceTime:
    """The device time of one order: of the spans in which this object was entered.

    The device thread owns it until the order's last fence is reached; then its reporter does.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self.last_fence: TimedFence | None = None  # ends the last span
        self._began: TimedFence | None = None
        self._spans: list[tuple[TimedFence, TimedFence]] = []  # pairs of fences whose end may not be reached yet
        self._settled_ns = 0  # the sum of all other spans

    def __enter__(self) -> None:
        self._began = self._device.timed_fence()

    def __exit__(self, *_: object) -> None:
        assert self._began is not None, "a span begins before it ends"
        self._settle()
        self.last_fence = self._device.timed_fence()
        self._spans.append((self._began, self.last_fence))
        self._began = None

    def total_ns(self) -> int:
        """Returns the sum of all spans. A fence after the last span must have been reached."""
        return self._settled_ns + sum([end.ns_since(began) for began, end in self._spans])

    def _settle(self) -> None:
        """Adds reached spans to the sum, so that an order with many slices keeps few spans.

        The device reaches them in order.
        """
        while self._spans and self._spans[0][1].is_reached():
            began, end = self._spans.pop(0)
            self._settled_ns += end.ns_since(began)
