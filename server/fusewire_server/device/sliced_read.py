"""Fetches a large value in slices. Runs on the device thread."""

from __future__ import annotations

import logging
import time

from fusewire_kernels.devices.base import Device
from fusewire_protos.errors import OutOfMemory
from fusewire_server.device.device_time import DeviceTime
from fusewire_server.device.large_read import LargeRead
from fusewire_server.device.orders import Brought, Missing, Read, no_room_on_host
from fusewire_server.scheduling.time_shares import Progress

log = logging.getLogger("fusewire.device")


class SlicedRead:
    """A read of a large value. `used_ns` is the time that the read's slices took; the device thread adds it up."""

    def __init__(self, device: Device, order: Read) -> None:
        self.order = order
        self.device_time = DeviceTime(device)
        self.used_ns = 0
        self._copy: LargeRead | None = None
        self._refusal: str | None = None
        value = order.pending.value
        if value.block is None:
            return
        try:
            self._copy = LargeRead(device, value.block, value.size_bytes)
        except (MemoryError, OutOfMemory):
            self._refuse()

    @property
    def tenant(self) -> str:
        """Returns the tenant of the session that reads. The slices take that tenant's turns."""
        return self.order.pending.session.tenant

    def go_on(self, until_ns: int) -> Progress:
        copy = self._copy
        if copy is not None and self.order.pending.is_unwanted:
            copy.cut_short()
        while copy is not None and not copy.is_over:
            try:
                has_come = copy.go_on()
            except MemoryError:
                self._refuse()
                copy.cut_short()
                continue
            if not has_come:
                return Progress.WAITS
            if time.perf_counter_ns() >= until_ns:
                return Progress.GOES_ON
        return Progress.ENDED

    def outcome(self) -> Brought | Missing:
        """Returns the outcome of the read after the read has ended. May be called on any thread."""
        pending = self.order.pending
        if self._copy is None or self._refusal is not None or pending.is_unwanted:
            return Missing(pending, self.device_time.total_ns(), self._refusal)
        return Brought(pending, self._copy.data(), self.device_time.total_ns())

    def _refuse(self) -> None:
        self._refusal = no_room_on_host(self.order.pending.value.size_bytes)
        log.warning("a fetch fails: %s", self._refusal)
