"""Says what `device=` may name: a session has one device, that of its server."""

from __future__ import annotations

from typing import Any

from fusewire._errors import ArgumentError
from fusewire._recording.default_session import default_session


def session_on(device: str | None) -> Any:
    """Returns the default session. Raises ArgumentError unless `device` is None or that session's device."""
    session = default_session()
    check_device(session, device)
    return session


def check_device(session: Any, device: str | None) -> None:
    """Raises ArgumentError unless `device` is None or the session's device."""
    if device is not None and device != session.backend:
        raise ArgumentError(
            f"device {device!r}: this session has one device, {session.backend!r}; connect to another server for "
            "another device, and carry values there by x.numpy()"
        )
