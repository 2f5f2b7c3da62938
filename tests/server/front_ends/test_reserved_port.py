"""A port that front ends share: they may listen on it, and nobody else may, from its reservation to its end."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError
from fusewire_server.front_ends.reserved_port import ReservedPort

HERE, EVERYWHERE = "127.0.0.1", "0.0.0.0"  # noqa: S104 - for a moment


@contextmanager
def bound(host: str, port: int, *, shared: bool = False, listening: bool = True) -> Iterator[socket.socket]:
    """A socket as gRPC makes one."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        made.bind((host, port))
        if listening:
            made.listen()
        yield made


@pytest.mark.parametrize("host", [HERE, "::1", "localhost", EVERYWHERE])
def test_any_free_port_is_found(host: str) -> None:
    with closing(ReservedPort(Address(host, 0))) as reserved:
        assert reserved.port > 0


def test_a_port_that_is_named_is_reserved() -> None:
    with closing(ReservedPort(Address(HERE, 0))) as found:
        port = found.port
    with closing(ReservedPort(Address(HERE, port))) as reserved:
        assert reserved.port == port


@pytest.mark.parametrize("host", [HERE, "::1", "localhost"])
def test_whoever_shares_it_gets_all_connections(host: str) -> None:
    with closing(ReservedPort(Address(host, 0))) as reserved:
        place = HERE if host == "localhost" else host
        with bound(place, reserved.port, shared=True) as first, bound(place, reserved.port, shared=True) as second:
            connections = [socket.create_connection((place, reserved.port)) for _ in range(20)]
            first.settimeout(0.0)
            second.settimeout(0.0)
            assert len([*accepted(first), *accepted(second)]) == len(connections)
            for connection in connections:
                connection.close()


def accepted(listener: socket.socket) -> Iterator[None]:
    """One for each connection that waits."""
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return
        yield


@pytest.mark.parametrize("other", [HERE, EVERYWHERE])
@pytest.mark.parametrize("is_served", [False, True], ids=["reserved", "served"])
def test_whoever_does_not_share_it_is_refused(other: str, *, is_served: bool) -> None:
    with (
        closing(ReservedPort(Address(HERE, 0))) as reserved,
        bound(HERE, reserved.port, shared=True, listening=is_served),
    ):
        with pytest.raises(OSError, match="in use"), bound(other, reserved.port):
            pass
        with pytest.raises(ConfigurationError, match=rf"^cannot listen on listen.grpc = {other}:\d+: Address already"):
            ReservedPort(Address(other, reserved.port))


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
@pytest.mark.parametrize("host", [HERE, EVERYWHERE, "localhost"])
def test_a_port_on_which_another_process_listens_is_not_reserved(host: str, *, shared: bool) -> None:
    with bound(HERE, 0, shared=shared) as other, pytest.raises(ConfigurationError, match="Address already in use"):
        ReservedPort(Address(host, other.getsockname()[1]))


def test_connections_that_a_former_server_has_closed_do_not_count() -> None:
    with bound(HERE, 0, shared=True) as former:
        port: int = former.getsockname()[1]
        with socket.create_connection((HERE, port)) as client:
            former.accept()[0].close()  # who closes first keeps the port for a minute
            assert client.recv(1) == b""
    ReservedPort(Address(HERE, port)).close()


def test_it_is_free_when_it_is_left() -> None:
    reserved = ReservedPort(Address(HERE, 0))
    reserved.close()
    with bound(HERE, reserved.port):
        pass


@pytest.mark.parametrize(
    ("host", "reason"),
    [("no-such-host.invalid", "[Nn]ame"), ("192.0.2.1", "Cannot assign requested address")],
    ids=["unknown", "of another machine"],
)
def test_a_host_that_this_machine_does_not_have_is_refused_in_words(host: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^cannot listen on listen.grpc = {host}:7000: .*{reason}"):
        ReservedPort(Address(host, 7000))


def test_an_address_of_a_name_that_this_machine_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ::1 is of localhost where there is no IPv6."""
    places = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, 0)) for host in ("192.0.2.1", HERE)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
    with (
        closing(ReservedPort(Address("a-name", 0))) as reserved,
        pytest.raises(OSError, match="in use"),
        bound(HERE, reserved.port),
    ):
        pass
