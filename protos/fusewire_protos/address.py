"""Parses the address of a server, written HOST:PORT. Client and server use the same parser."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from typing import NamedTuple

_LABEL = "[A-Za-z0-9_-]{1,63}"
_NAME = re.compile(rf"({_LABEL}\.)*{_LABEL}\.?")  # a host name, or an IPv4 address
_MOST_PORT_DIGITS = 5


class Address(NamedTuple):
    """Holds a host name or IP address, and a port. On port 0 a server listens on any port that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def is_loopback(self) -> bool:
        """Returns whether only this machine can connect to the address.

        Host names are not looked up, so this returns False for every name other than localhost.
        """
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def read_address(raw: object, least_port: int = 0) -> Address:
    """Parses HOST:PORT, where an IPv6 host stands in brackets. An `Address` is returned as given.

    Raises ValueError, with a message that says what was expected.
    """
    if isinstance(raw, Address):
        return raw
    host, _, port = raw.rpartition(":") if isinstance(raw, str) else ("", "", "")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= _MOST_PORT_DIGITS else -1
    name = _host(host)
    if name is None or not least_port <= number < 1 << 16:
        raise ValueError(f"expected HOST:PORT with a port from {least_port} to 65535, and an IPv6 host in brackets")
    return Address(name, number)


def _host(text: str) -> str | None:
    """Returns the host without its brackets, or None if `text` is no valid host."""
    if text.startswith("[") and text.endswith("]"):
        with suppress(ValueError):
            return str(ipaddress.IPv6Address(text[1:-1]))
        return None
    return text if _NAME.fullmatch(text) else None
