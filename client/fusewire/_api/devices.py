"""Says what `device=` may name: a session, or the one device that a session has, that of its server."""

from __future__ import annotations

from typing import Any

from fusewire._errors import ArgumentError
from fusewire._recording.default_session import default_session
from fusewire._recording.recorder import Owner

Device = str | Owner | None  # the name of the device of a session, or the session


def session_on(device: Device) -> Any:
    """Returns the session that `device` is, else the default session.

    Raises ArgumentError unless `device` is a session, None, or the default session's device.
    """
    session = default_session() if device is None or isinstance(device, str) else device
    check_device(session, device)
    return session


def check_device(session: Any, device: Device) -> None:
    """Raises ArgumentError unless `device` is None, the session, or its device."""
    if device is None or (device is session and not isinstance(device, str)):
        return
    if not isinstance(device, str):
        raise ArgumentError("device= is another session than that of the array; carry values there by x.numpy()")
    if device != session.backend:
        raise ArgumentError(
            f"device {device!r}: this session has one device, {session.backend!r}; connect to another server for "
            "another device, and carry values there by x.numpy()"
        )
