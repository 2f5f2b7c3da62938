"""Reserves the port that the front ends of a server share, so that nobody else listens on it.

Processes of one user may share a port if all of them ask for it. So two servers would share one without noticing, and
each would get a part of the other's clients.
"""

from __future__ import annotations

import errno
import socket

from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError

_LACKING = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})  # as IPv6 may be, which a name may have too


class ReservedPort:
    """Sockets that are bound to a port and do not listen, so that no connection comes to them."""

    def __init__(self, address: Address) -> None:
        """Reserves the port of an address, or any port if it is 0.

        Raises ConfigurationError if another process has it, or if this process may not have it.
        """
        self.port = address.port
        self._sockets: list[socket.socket] = []
        try:
            self._reserve(address.host)
        except OSError as error:
            self.close()
            raise ConfigurationError(f"cannot listen on listen.grpc = {address}: {error.strerror}") from None

    def close(self) -> None:
        """Leaves the port to others."""
        for each in self._sockets:
            each.close()

    def _reserve(self, host: str) -> None:
        """Reserves the port on each of the host's addresses that this machine has. Raises OSError."""
        lacking: OSError | None = None
        for family, _, _, _, place in socket.getaddrinfo(host, self.port, type=socket.SOCK_STREAM):
            at = (place[0], self.port, *place[2:])  # the port may have been found meanwhile
            try:
                if self.port:
                    _bound(family, at, shared=False).close()
                self._sockets.append(_bound(family, at, shared=True))
            except OSError as error:
                if error.errno not in _LACKING:
                    raise
                lacking = error
            else:
                self.port = self._sockets[-1].getsockname()[1]
        if lacking is not None and not self._sockets:
            raise lacking


def _bound(family: int, place: tuple[str | int | bytes, ...], *, shared: bool) -> socket.socket:
    """Returns a socket that is bound to a place. Raises OSError if another one is that does not share it."""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        # With it, connections that a former server has closed do not count. But who does not listen does not count
        # either, so that others would not find the port reserved: hence it ends.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except BaseException:
        made.close()
        raise
    return made
