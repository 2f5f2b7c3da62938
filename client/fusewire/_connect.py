"""Connecting, and the session that functions without an array operand use.

The default session is the one connected last that is still open. Where there is none, FUSEWIRE_TARGET says where to
connect, and FUSEWIRE_TOKEN with which token.
"""

from __future__ import annotations

import atexit
import os
import threading
from importlib.metadata import PackageNotFoundError, version

import grpc

from fusewire._errors import ConfigurationError
from fusewire._grpc_transport import GrpcTransport
from fusewire._session import Session, close_all
from fusewire._transport import Transport

TARGET_VARIABLE = "FUSEWIRE_TARGET"
TOKEN_VARIABLE = "FUSEWIRE_TOKEN"  # noqa: S105  # the name of a variable
CONNECT_TIMEOUT_S = 20.0

_connected: list[Session] = []
_connecting = threading.RLock()


def connect(
    target: str | None = None,
    *,
    token: str | None = None,
    credentials: grpc.ChannelCredentials | None = None,
    debug: bool = False,
    timeout: float = CONNECT_TIMEOUT_S,
) -> Session:
    """Opens a session on the server at `target` (host:port, or unix:path), by default that of FUSEWIRE_TARGET.

    `credentials`, from `grpc.ssl_channel_credentials`, make the connection private. `debug` keeps the line of the
    user's code that recorded each op, for errors; it makes recording slower. Raises SessionLost if the server
    cannot be reached, Unauthenticated, or WaitTimeout after `timeout` seconds.
    """
    target = target or os.environ.get(TARGET_VARIABLE)
    if not target:
        raise ConfigurationError(f"no server is named: pass a target or set {TARGET_VARIABLE}")
    token = token or os.environ.get(TOKEN_VARIABLE)
    return open_session(GrpcTransport(target, token=token, credentials=credentials), debug=debug, timeout=timeout)


def open_session(transport: Transport, *, debug: bool = False, timeout: float = CONNECT_TIMEOUT_S) -> Session:
    """As `connect`, over any transport."""
    session = Session(transport, debug=debug, client=f"fusewire-python {__version__}")
    session.open(timeout)
    with _connecting:
        _connected[:] = [each for each in _connected if each.is_open] + [session]
    return session


def default_session() -> Session:
    """The open session connected last; connects if there is none and FUSEWIRE_TARGET says where."""
    with _connecting:
        opened = next((session for session in reversed(_connected) if session.is_open), None)
        return opened or connect()


def _version() -> str:
    try:
        return version("fusewire")
    except PackageNotFoundError:  # run from the tree
        return "0"


__version__ = _version()

atexit.register(close_all)
