"""Asks the server of this machine whether it is alive, as a container's health check does."""

from __future__ import annotations

import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection

from fusewire_server.config.config import Listen

_DEADLINE_S = 4.0
_ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - to be asked on loopback


def is_alive(listen: Listen) -> bool:
    """Returns whether the server with these settings answers `/livez` on this machine."""
    host, port = _ALL_ADDRESSES.get(listen.http.host, listen.http.host), listen.http.port
    connection = HTTPConnection(host, port, timeout=_DEADLINE_S)
    if listen.tls_cert is not None:
        # The certificate names the server as others call it. Here it is enough to reach this machine.
        unchecked = ssl._create_unverified_context()  # noqa: S323
        connection = HTTPSConnection(host, port, timeout=_DEADLINE_S, context=unchecked)
    try:
        connection.request("GET", "/livez", headers={"Host": f"localhost:{port}"})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
