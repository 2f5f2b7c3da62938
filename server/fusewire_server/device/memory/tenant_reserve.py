"""Decides whether a tenant may take more of the device's memory, so that another tenant always finds room. Pure.

The last part of the memory, `limits.tenant_reserve`, is for tenants that hold little. A tenant that holds more than the
memory divided by the number of tenants that hold any, and one more, may not allocate from it.
"""

from __future__ import annotations

from fusewire_protos.errors import OutOfMemory
from fusewire_server.sessions.device_share import NOBODYS, DeviceShare


class TenantReserve:
    """The shares of all tenants in a device's memory. The device thread owns this object. `fraction` is the setting."""

    def __init__(self, fraction: float = 0.0) -> None:
        self.is_kept = fraction > 0.0
        self._fraction = fraction
        self._holding: set[DeviceShare] = set()  # the shares of tenants that hold memory

    def note_held(self, share: DeviceShare) -> None:
        """Notes that a tenant that held no memory holds some now."""
        if share is not NOBODYS:
            self._holding.add(share)

    def note_empty(self, share: DeviceShare) -> None:
        """Notes that a tenant holds no memory any more."""
        self._holding.discard(share)

    def check(self, share: DeviceShare, more_bytes: int, live_bytes: int, memory_bytes: int) -> None:
        """Raises OutOfMemory if a tenant that holds its share asks for memory that is reserved for others."""
        reserved_bytes = int(memory_bytes * self._fraction)
        fair_bytes = memory_bytes // (len(self._holding) + 1)
        if share is NOBODYS or live_bytes + more_bytes <= memory_bytes - reserved_bytes:
            return
        if share.held_bytes + more_bytes > fair_bytes:
            raise OutOfMemory(
                f"the tenant holds {share.held_bytes} bytes of the device, more than {fair_bytes} with {more_bytes} "
                f"more, and the last {reserved_bytes} are for others; limits.tenant_reserve = {self._fraction}"
            )
