"""The inspection server: a thread of its own that starts, answers and stops in bounded time, with and without TLS."""

import asyncio
import socket
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from fusewire_protos.errors import ConfigurationError
from fusewire_server.inspect import serve
from fusewire_server.inspect.api import create_app
from fusewire_server.inspect.serve import InspectionServer, bind
from fusewire_server.settings import Address
from tests.server.inspect.examples import SNAPSHOT, RememberingControl

ANY_PORT = Address("127.0.0.1", 0)
DEADLINE_S = 10.0


def application() -> FastAPI:
    return create_app(lambda: SNAPSHOT, None, RememberingControl())


@pytest.fixture
def server() -> Iterator[InspectionServer]:
    server = InspectionServer(application(), bind(ANY_PORT))
    server.start()
    yield server
    server.stop(DEADLINE_S)


def fetch(url: str, context: ssl.SSLContext | None = None) -> str:
    with urllib.request.urlopen(url, timeout=DEADLINE_S, context=context) as answer:  # noqa: S310 - our own url
        text: str = answer.read().decode()
    return text


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "fusewire-inspection"]


def test_it_answers_on_the_port_it_was_given_by_the_system(server: InspectionServer) -> None:
    assert server.port != 0
    assert fetch(f"http://127.0.0.1:{server.port}/livez") == "alive"


def test_it_stops_with_its_thread_and_socket() -> None:
    server = InspectionServer(application(), bind(ANY_PORT))
    server.start()
    port = server.port
    server.stop(DEADLINE_S)
    assert threads() == []
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), DEADLINE_S):
        pass


def test_it_stops_although_a_request_never_ends() -> None:
    app = FastAPI()
    begun = threading.Event()

    @app.get("/")
    async def never() -> None:
        begun.set()
        await asyncio.Event().wait()

    server = InspectionServer(app, bind(ANY_PORT))
    server.start()
    with socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: fusewire\r\n\r\n")
        assert begun.wait(DEADLINE_S)
        server.stop(0.5)
    assert threads() == []


def test_it_can_be_stopped_before_it_was_started() -> None:
    server = InspectionServer(application(), bind(ANY_PORT))
    server.stop(DEADLINE_S)
    assert threads() == []


def test_a_taken_port_is_refused_by_name(server: InspectionServer) -> None:
    with pytest.raises(ConfigurationError, match=rf"listen\.http = 127\.0\.0\.1:{server.port}: "):
        bind(Address("127.0.0.1", server.port))


def test_an_unknown_host_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"listen\.http = nowhere\.invalid:0: "):
        bind(Address("nowhere.invalid", 0))


def test_with_a_certificate_it_speaks_tls_only(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    server = InspectionServer(application(), bind(ANY_PORT), tls_cert=cert, tls_key=key)
    server.start()
    try:
        context = ssl.create_default_context(cafile=str(cert))
        assert fetch(f"https://127.0.0.1:{server.port}/livez", context) == "alive"
        with pytest.raises(OSError, match=r"closed|reset|aborted"):
            fetch(f"http://127.0.0.1:{server.port}/livez")
    finally:
        server.stop(DEADLINE_S)


def test_a_certificate_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    broken = tmp_path / "cert.pem"
    broken.write_text("no certificate")
    with bind(ANY_PORT) as bound, pytest.raises(ConfigurationError, match=r"listen\.tls_cert = .*cert\.pem"):
        InspectionServer(application(), bound, tls_cert=broken, tls_key=broken)


def connected(server: InspectionServer, head: bytes = b"GET /li") -> socket.socket:
    """A connection that has sent part of a request."""
    connection = socket.create_connection(("127.0.0.1", server.port), DEADLINE_S)
    connection.sendall(head)
    return connection


def test_health_is_answered_however_many_connections_wait_with_half_a_request(server: InspectionServer) -> None:
    waiting = [connected(server) for _ in range(100)]
    try:
        assert fetch(f"http://127.0.0.1:{server.port}/livez") == "alive"
    finally:
        for connection in waiting:
            connection.close()


def test_a_connection_that_asks_for_nothing_is_ended_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "_REQUEST_DEADLINE_S", 0.1)
    server = InspectionServer(application(), bind(ANY_PORT))
    server.start()
    try:
        with connected(server) as connection:
            assert _received(connection) == b""
    finally:
        server.stop(DEADLINE_S)


def _received(connection: socket.socket) -> bytes:
    """Empty at its end, orderly or not."""
    try:
        return connection.recv(1)
    except ConnectionResetError:
        return b""
