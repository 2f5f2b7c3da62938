"""Parses HOST:PORT, the address of a server, for client and server."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from typing import NamedTuple

_NAME = re.compile(r"[A-Za-z0-9._-]+")  # a host name or an IPv4 address
_MOST_PORT_DIGITS = 5


class Address(NamedTuple):
    """A host name or IP address, and a port. A server that listens on port 0 takes any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def is_loopback(self) -> bool:
        """Whether only this machine can connect. False for names other than localhost, which are not looked up."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def read_address(raw: object, least_port: int = 0) -> Address:
    """Parses HOST:PORT with an IPv6 host in brackets. Raises ValueError, which says what was expected."""
    if isinstance(raw, Address):
        return raw
    host, _, port = raw.rpartition(":") if isinstance(raw, str) else ("", "", "")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= _MOST_PORT_DIGITS else -1
    name = _host(host)
    if name is None or not least_port <= number < 1 << 16:
        raise ValueError(f"expected HOST:PORT with a port from {least_port} to 65535, and an IPv6 host in brackets")
    return Address(name, number)


def _host(text: str) -> str | None:
    """The host, without its brackets."""
    if text.startswith("[") and text.endswith("]"):
        with suppress(ValueError):
            return str(ipaddress.IPv6Address(text[1:-1]))
        return None
    return text if _NAME.fullmatch(text) else None
