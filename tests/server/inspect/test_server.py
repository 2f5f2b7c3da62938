"""The inspection server: a thread of its own that starts, answers and stops in bounded time, with and without TLS."""

import asyncio
import json
import queue
import socket
import ssl
import struct
import subprocess
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, StreamingResponse

from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError
from fusewire_server.access.certificates import CertificateFiles
from fusewire_server.inspect import server as http_server
from fusewire_server.inspect import watching
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.requests.refusals import RefusalCounts
from fusewire_server.inspect.server import InspectionServer, bind
from tests.patience import HANGS_S, Patience
from tests.server.inspect.examples import SESSION, SNAPSHOT, FixedSnapshots, RememberingControl

ANY_PORT = Address("127.0.0.1", 0)
DEADLINE_S = HANGS_S


def application() -> FastAPI:
    return create_app(FixedSnapshots(), None, RememberingControl())


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


def test_a_connection_that_is_broken_off_leaves_no_timer(
    server: InspectionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: queue.SimpleQueue[tuple[Exception | None, object]] = queue.SimpleQueue()
    lose = http_server._BoundedProtocol.connection_lost

    def lose_and_tell(self: http_server._BoundedProtocol, exc: Exception | None) -> None:
        lose(self, exc)
        lost.put((exc, self.timeout_keep_alive_task))

    monkeypatch.setattr(http_server._BoundedProtocol, "connection_lost", lose_and_tell)
    with socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        while not answer.endswith(b"alive"):
            received = connection.recv(4096)
            assert received
            answer += received
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # sends a reset at the end
    error, timer = lost.get(timeout=DEADLINE_S)
    assert isinstance(error, ConnectionResetError)
    assert timer is None


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
    server = InspectionServer(application(), bind(ANY_PORT), certificate=CertificateFiles(cert, key))
    server.start()
    try:
        context = ssl.create_default_context(cafile=str(cert))
        assert fetch(f"https://127.0.0.1:{server.port}/livez", context) == "alive"
        with pytest.raises(OSError, match=r"closed|reset|aborted"):
            fetch(f"http://127.0.0.1:{server.port}/livez")
    finally:
        server.stop(DEADLINE_S)


def test_a_new_certificate_is_presented_though_its_key_is_of_another_type(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    server = InspectionServer(application(), bind(ANY_PORT), certificate=CertificateFiles(cert, key))
    server.start()
    try:
        new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost")
        subprocess.run((*new, "-keyout", key, "-out", cert), check=True, capture_output=True, timeout=HANGS_S)
        presented = ssl.get_server_certificate(("127.0.0.1", server.port), timeout=DEADLINE_S)
        assert presented.split() == cert.read_text(encoding="utf-8").split()
    finally:
        server.stop(DEADLINE_S)


def connected(server: InspectionServer, head: bytes = b"GET /li") -> socket.socket:
    """A connection that has sent part of a request."""
    connection = socket.create_connection(("127.0.0.1", server.port), DEADLINE_S)
    connection.sendall(head)
    return connection


def test_the_peer_is_who_has_connected_and_not_whom_a_header_names() -> None:
    app = FastAPI()

    @app.get("/")
    async def peer(request: Request) -> str:
        assert request.client is not None
        return request.client.host

    server = InspectionServer(app, bind(ANY_PORT))
    server.start()
    try:
        with connected(server, b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.9.8.7\r\n\r\n") as connection:
            answer = HTTPResponse(connection)
            answer.begin()
            assert json.loads(answer.read()) == "127.0.0.1"
    finally:
        server.stop(DEADLINE_S)


def test_health_is_answered_however_many_connections_wait_with_half_a_request(server: InspectionServer) -> None:
    waiting = [connected(server) for _ in range(100)]
    try:
        assert fetch(f"http://127.0.0.1:{server.port}/livez") == "alive"
    finally:
        for connection in waiting:
            connection.close()


def test_a_connection_that_asks_for_nothing_is_ended_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_REQUEST_DEADLINE_S", 0.1)
    server = InspectionServer(application(), bind(ANY_PORT))
    server.start()
    try:
        with connected(server) as connection:
            assert _received(connection) == b""
    finally:
        server.stop(DEADLINE_S)


def test_a_request_whose_body_does_not_come_is_ended_in_time(
    server: InspectionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_REQUEST_DEADLINE_S", 0.1)
    with connected(server, b"PUT /v1/log HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n") as connection:
        assert _received(connection) == b""


def test_who_has_asked_is_answered_however_long_the_server_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_REQUEST_DEADLINE_S", 0.1)
    monkeypatch.setattr(http_server, "_READING_DEADLINE_S", 0.1)
    app = FastAPI()

    @app.get("/")
    async def late() -> None:
        is_late = asyncio.Event()
        asyncio.get_running_loop().call_later(0.3, is_late.set)
        await is_late.wait()

    server = InspectionServer(app, bind(ANY_PORT))
    server.start()
    try:
        assert fetch(f"http://127.0.0.1:{server.port}/") == "null"
    finally:
        server.stop(DEADLINE_S)


def _received(connection: socket.socket) -> bytes:
    """Empty at its end, orderly or not."""
    try:
        return connection.recv(1)
    except ConnectionResetError:
        return b""


def test_a_client_that_sends_requests_without_waiting_for_answers_gets_one(server: InspectionServer) -> None:
    with connected(server, 3 * b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") as connection:
        received = b"".join(iter(lambda: connection.recv(4096), b""))
    assert received.count(b"HTTP/1.1 200") == 1


class Endless:
    """A server that answers `/` with text that never ends, and `/livez` at once."""

    def __init__(self) -> None:
        self.is_given_up = threading.Event()
        app = FastAPI()

        async def zeros() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield bytes(1 << 20)
                    await asyncio.sleep(0)  # without a pause a cancellation would never come
            finally:
                self.is_given_up.set()

        @app.get("/")
        async def never() -> StreamingResponse:
            return StreamingResponse(zeros())

        @app.get("/livez")
        async def live() -> PlainTextResponse:
            return PlainTextResponse("alive")

        self.server = InspectionServer(app, bind(ANY_PORT))


@pytest.fixture
def endless() -> Iterator[Endless]:
    endless = Endless()
    yield endless
    endless.server.stop(0.5)


def test_a_client_that_does_not_read_its_answer_is_ended_in_time(
    endless: Endless, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_READING_DEADLINE_S", 0.1)
    endless.server.start()
    with connected(endless.server, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
        assert endless.is_given_up.wait(DEADLINE_S)


class Unread:
    """A transport of which a client has not read `unread_bytes`, and the timers of an event loop."""

    def __init__(self, unread_bytes: int) -> None:
        self.unread_bytes = unread_bytes
        self.is_aborted = False
        self.due: list[Callable[[], None]] = []

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes

    def abort(self) -> None:
        self.is_aborted = True

    def call_later(self, _delay_s: float, function: Callable[..., None], *arguments: Any) -> None:
        self.due.append(lambda: function(*arguments))


def test_a_client_that_goes_on_reading_is_not_ended() -> None:
    unread = Unread(1 << 20)
    connection = object.__new__(http_server._BoundedProtocol)
    connection._accepted = connection.transport = connection.loop = unread  # type: ignore[assignment]
    connection._expect_reading()
    for _ in range(3):
        unread.unread_bytes -= http_server._LEAST_READ_BYTES
        unread.due.pop()()
        assert not unread.is_aborted
    unread.unread_bytes -= 1
    unread.due.pop()()
    assert unread.is_aborted


def test_a_client_that_does_not_read_the_end_of_its_answer_is_ended_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_READING_DEADLINE_S", 0.1)
    app = FastAPI()

    @app.get("/")
    async def long() -> PlainTextResponse:
        return PlainTextResponse("x" * 60_000)

    bound = bind(ANY_PORT)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    server = InspectionServer(app, bound)
    server.start()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert client.recv(1, socket.MSG_PEEK) == b"H"
        patience = Patience()
        while server._server.server_state.connections and not patience.is_exhausted():
            pass
        assert not server._server.server_state.connections
    server.stop(DEADLINE_S)


def test_a_second_request_that_does_not_come_to_its_end_is_ended_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    server = InspectionServer(application(), bind(ANY_PORT))
    server.start()
    try:
        with connected(server, b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n") as connection:
            answer = HTTPResponse(connection)
            answer.begin()
            assert answer.read() == b"alive"
            monkeypatch.setattr(http_server, "_REQUEST_DEADLINE_S", 0.1)
            connection.sendall(b"GET /li")
            assert _received(connection) == b""
    finally:
        server.stop(DEADLINE_S)


def test_health_is_answered_however_many_clients_do_not_read_their_answers(endless: Endless) -> None:
    endless.server.start()
    waiting = [connected(endless.server, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") for _ in range(100)]
    try:
        assert fetch(f"http://127.0.0.1:{endless.server.port}/livez") == "alive"
    finally:
        for connection in waiting:
            connection.close()


def test_health_is_answered_though_many_connect_right_behind_who_asks() -> None:
    """They wait in the kernel until the server starts, so it meets them all at once, and the oldest one asks."""
    server = InspectionServer(application(), bind(ANY_PORT))
    asking = connected(server, b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    others = [connected(server, b"GET /livez HTTP/1.1\r\n") for _ in range(120)]
    server.start()
    try:
        assert _received(asking) == b"H"
    finally:
        server.stop(DEADLINE_S)
        for connection in (asking, *others):
            connection.close()


@pytest.fixture(params=["in the clear", "tls"])
def unstarted(request: pytest.FixtureRequest, certificate: tuple[Path, Path]) -> Iterator[InspectionServer]:
    """Whoever connects to it is let in with all the others, once it is started."""
    files = CertificateFiles(*certificate) if request.param == "tls" else None
    server = InspectionServer(application(), bind(ANY_PORT), certificate=files)
    yield server
    server.stop(DEADLINE_S)


def test_however_many_connect_at_once_and_say_nothing_few_stay(
    unstarted: InspectionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_MOST_CONNECTIONS", 4)
    monkeypatch.setattr(http_server, "_REQUEST_DEADLINE_S", 100 * DEADLINE_S)
    silent = [socket.create_connection(("127.0.0.1", unstarted.port), DEADLINE_S) for _ in range(40)]
    unstarted.start()
    try:
        for connection in silent[:36]:
            assert _received(connection) == b""
        for connection in silent[36:]:
            connection.settimeout(0.0)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
    finally:
        for connection in silent:
            connection.close()


def test_a_connection_that_says_nothing_is_ended_in_time(
    unstarted: InspectionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_REQUEST_DEADLINE_S", 0.1)
    unstarted.start()
    with socket.create_connection(("127.0.0.1", unstarted.port), DEADLINE_S) as connection:
        assert _received(connection) == b""


def test_who_ends_the_handshake_with_a_request_is_answered_beside_those_who_never_do(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_MOST_CONNECTIONS", 4)
    cert, key = certificate
    server = InspectionServer(application(), bind(ANY_PORT), certificate=CertificateFiles(cert, key))
    server.start()
    silent = [socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) for _ in range(40)]
    try:
        context = ssl.create_default_context(cafile=str(cert))
        assert fetch(f"https://127.0.0.1:{server.port}/livez", context) == "alive"
        assert _answer_to_early_request(server.port, context).startswith(b"HTTP/1.1 200")
    finally:
        for connection in silent:
            connection.close()
        server.stop(DEADLINE_S)


def _answer_to_early_request(port: int, context: ssl.SSLContext) -> bytes:
    """To a request that is sent in one piece with what ends the handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as connection:

        def until_done(function: Callable[[], Any]) -> Any:
            while True:
                try:
                    return function()
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    incoming.write(connection.recv(1 << 16))

        until_done(tls.do_handshake)
        tls.write(b"GET /livez HTTP/1.1\r\nHost: fusewire\r\nConnection: close\r\n\r\n")
        connection.sendall(outgoing.read())
        answer: bytes = until_done(lambda: tls.read(1 << 16))
        return answer


@pytest.mark.parametrize(
    ("sent", "status", "title"),
    [
        (b"\x00 no request\r\n\r\n", 400, "bad request"),
        (b"GET / HTTP/1.1\r\nno header\r\n\r\n", 400, "bad request"),
        (b"GET /" + b"x" * (40 << 10), 414, "uri too long"),
        (b"GET / HTTP/1.1\r\nx: " + b"x" * (40 << 10), 431, "headers too large"),
    ],
)
def test_what_cannot_be_read_is_refused_by_a_problem(
    server: InspectionServer, sent: bytes, status: int, title: str
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) as connection:
        connection.sendall(sent)
        answer = HTTPResponse(connection)
        answer.begin()
        answered = json.loads(answer.read())
        assert (answer.status, answer.getheader("content-type")) == (status, "application/problem+json")
        assert (answered["status"], answered["title"]) == (status, title)


@pytest.mark.parametrize(
    ("sent", "case"),
    [
        (b"no request\r\n\r\n", "bad_request"),
        (b"GET /" + b"x" * (40 << 10), "uri_too_long"),
        (b"GET / HTTP/1.1\r\nx: " + b"x" * (40 << 10), "headers_too_large"),
    ],
)
def test_what_cannot_be_read_counts_as_refused(sent: bytes, case: str) -> None:
    counts = RefusalCounts()
    server = InspectionServer(application(), bind(ANY_PORT), count_refusal=counts.add)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) as connection:
            connection.sendall(sent)
            HTTPResponse(connection).begin()
    finally:
        server.stop(DEADLINE_S)
    assert {case: count for case, count in counts.items() if count} == {case: 1}


def begin_stream(server: InspectionServer) -> tuple[socket.socket, bytes]:
    """Asks for a live stream; the connection, and the beginning of the answer."""
    watcher = socket.socket()
    watcher.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    watcher.settimeout(DEADLINE_S)
    watcher.connect(("127.0.0.1", server.port))
    watcher.sendall(b"GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return watcher, watcher.recv(12)


def test_a_stream_that_nobody_reads_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_READING_DEADLINE_S", 0.3)
    monkeypatch.setattr(watching, "TICK_S", 0.001)
    monkeypatch.setattr(watching, "MOST_WATCHERS", 1)
    many = replace(SNAPSHOT, sessions=(SESSION,) * 2_000)
    server = InspectionServer(create_app(FixedSnapshots(many), None, RememberingControl()), bind(ANY_PORT))
    server.start()
    silent, status = begin_stream(server)
    assert status == b"HTTP/1.1 200"
    statuses = []
    while b"HTTP/1.1 200" not in statuses:
        follower, status = begin_stream(server)
        follower.close()
        statuses.append(status)
    assert b"HTTP/1.1 503" in statuses
    silent.close()
    server.stop(DEADLINE_S)


def test_a_stream_does_not_hold_up_the_end_of_the_server() -> None:
    server = InspectionServer(application(), bind(ANY_PORT))
    server.start()
    watcher, status = begin_stream(server)
    assert status == b"HTTP/1.1 200"
    server.stop(DEADLINE_S)
    assert threads() == []
    watcher.close()


def test_streams_take_no_place_of_other_connections(server: InspectionServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_MOST_CONNECTIONS", 2)
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S) as watcher:
        watcher.sendall(b"GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert watcher.recv(15) == b"HTTP/1.1 200 OK"
        for _ in range(6):
            assert fetch(f"http://127.0.0.1:{server.port}/livez") == "alive"
        for _ in range(40):
            assert watcher.recv(256)
