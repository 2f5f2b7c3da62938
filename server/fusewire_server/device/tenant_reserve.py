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
        self._fraction = fraction
        self._tenants = 0  # how many hold memory

    def check(self, share: DeviceShare, more_bytes: int, live_bytes: int, memory_bytes: int) -> None:
        """Raises OutOfMemory if a tenant that holds its share asks for memory that is reserved for others."""
        if not self._fraction or share is NOBODYS:
            return
        reserved_bytes = int(memory_bytes * self._fraction)
        fair_bytes = memory_bytes // (self._tenants + 1)
        if live_bytes + more_bytes > memory_bytes - reserved_bytes and share.held_bytes + more_bytes > fair_bytes:
            raise OutOfMemory(
                f"the tenant holds {share.held_bytes} bytes of the device, more than {fair_bytes} with {more_bytes} "
                f"more, and the last {reserved_bytes} are for others; limits.tenant_reserve = {self._fraction}"
            )

    def count(self, share: DeviceShare, more_bytes: int) -> None:
        """Notes that a tenant holds so much more memory, or less."""
        if share is NOBODYS:
            return
        before_bytes = share.held_bytes
        share.held_bytes = after_bytes = before_bytes + more_bytes
        self._tenants += (after_bytes > 0) - (before_bytes > 0)
