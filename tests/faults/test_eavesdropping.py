"""A client does not tell its token to who listens to its network: it sends none in clear to another machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

import fusewire as fw
from tests.faults.server import DEADLINE_S

pytestmark = pytest.mark.faults

_SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # the frame by which a server begins HTTP/2
_CONNECT_S = 5.0


class _Eavesdropper:
    """Takes connections in place of a server, and keeps what comes on them."""

    def __init__(self, bound: socket.socket) -> None:
        self._bound = bound
        self.heard = b""
        # Not an address of loopback to the client, but one that leads to this machine.
        self.target = f"0.0.0.0:{bound.getsockname()[1]}"

    def listen(self) -> None:
        """Ends when the listening socket is shut down."""
        with suppress(OSError):
            while True:
                connection, _ = self._bound.accept()
                with connection, suppress(OSError):
                    connection.settimeout(DEADLINE_S)
                    connection.sendall(_SETTINGS)
                    while data := connection.recv(1 << 16):
                        self.heard += data


@contextmanager
def _eavesdropping() -> Iterator[_Eavesdropper]:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        eavesdropper = _Eavesdropper(bound)
        listening = threading.Thread(target=eavesdropper.listen)
        listening.start()
        try:
            yield eavesdropper
        finally:
            bound.shutdown(socket.SHUT_RDWR)
            listening.join(2 * DEADLINE_S)


def test_who_listens_to_the_network_hears_nothing_of_a_client_with_a_token(token: str) -> None:
    with _eavesdropping() as eavesdropper, pytest.raises(fw.ConfigurationError, match="unencrypted"):
        fw.connect(eavesdropper.target, token=token, timeout=_CONNECT_S)
    assert eavesdropper.heard == b""


def test_who_listens_hears_the_token_of_a_client_that_is_told_to_send_it(token: str) -> None:
    """Without this the test above would pass if nobody listened."""
    with _eavesdropping() as eavesdropper, pytest.raises(fw.FusewireError):
        fw.connect(eavesdropper.target, token=token, insecure_token=True, timeout=_CONNECT_S, local=False)
    assert token.encode() in eavesdropper.heard
