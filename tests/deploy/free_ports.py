"""Ports of this machine that nothing listens on, and that no connection gets by itself."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

# Below those that Linux gives to connections (32768 to 60999): a container may ask for its port minutes later.
_PORTS = range(20000, 32000)


def free_ports(count: int) -> list[int]:
    """Returns different ports of loopback that were free a moment ago."""
    free: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(free) == count:
            break
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            free.append(port)
    return free
