"""Counts the device memory that a tenant's values hold. The device thread owns the count; any thread may read it."""

from __future__ import annotations


class DeviceShare:
    """The device memory of one tenant."""

    __slots__ = ("held_bytes",)

    def __init__(self) -> None:
        self.held_bytes = 0


NOBODYS = DeviceShare()  # of blocks that are no tenant's, such as temporaries; it is not counted
