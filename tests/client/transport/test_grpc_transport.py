"""Sessions over gRPC: a server of this process, and the real one where it matters."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest

import fusewire as fw
from fusewire._connect import open_session
from fusewire._transport.grpc_transport import GrpcTransport, _address_of
from fusewire._transport.large_values import _reason_of
from fusewire.testing.memory_server import MemoryServer
from fusewire_protos.chunks import decode_chunk, encode_chunk
from fusewire_protos.errors import BY_NAME
from fusewire_protos.frames import Abandon, Fetch, Upload
from fusewire_protos.upload_call import HANDLE_HEADER, SESSION_HEADER
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.patience import HANGS_S

A = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
LARGE = np.arange(100_000, dtype=np.float64)


class Server:
    """A MemoryServer behind gRPC."""

    def __init__(self, credentials: grpc.ServerCredentials | None = None, place: str = "127.0.0.1:0") -> None:
        self.memory = MemoryServer()
        self.farewells: list[wire.ServerFrame] = []  # once there are any, they are all the client is told
        self.metadata: list[dict[str, Any]] = []  # of every call
        self.alter: Callable[[bytes], bytes] = lambda value: value  # what becomes of a value on its way down
        self.arrange: Callable[[list[bytes]], list[bytes]] = lambda chunks: chunks  # and of its chunks
        self.refusal: tuple[grpc.StatusCode, str] | None = None  # of every download
        self.take_upload: Callable[[], object] = lambda: None  # comes before the bytes of each upload are read
        self._owed: SimpleQueue[bytes | None] = SimpleQueue()
        self._declared = threading.Event()
        self.listening = grpc.server(ThreadPoolExecutor(8))
        self.listening.add_generic_rpc_handlers((self._handler(),))
        port = self._add_port(place, credentials)
        self.target = place.removesuffix(":0") + f":{port}" if place.endswith(":0") else place
        self.listening.start()

    def _add_port(self, place: str, credentials: grpc.ServerCredentials | None) -> int:
        if credentials is None:
            return self.listening.add_insecure_port(place)
        return self.listening.add_secure_port(place, credentials)

    def _handler(self) -> Any:
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Session": grpc.stream_stream_rpc_method_handler(self._session),
            "Upload": grpc.stream_unary_rpc_method_handler(self._upload),
            "Download": grpc.unary_stream_rpc_method_handler(self._download),
        }
        return grpc.method_handlers_generic_handler("fusewire.v1.Fusewire", methods)

    def _session(self, frames: Iterator[bytes], context: Any) -> Iterator[bytes]:
        self.metadata.append(dict(context.invocation_metadata()))
        reader = threading.Thread(target=self._read, args=(frames,))
        reader.start()
        yield from iter(self._owed.get, None)
        reader.join(10)

    def _read(self, frames: Iterator[bytes]) -> None:
        with suppress(grpc.RpcError):  # the client has gone
            for raw in frames:
                if self.farewells or wire.ClientFrame.FromString(raw).HasField("goodbye"):
                    break
                self._owe(self.memory.receive(raw))
                if self.memory.awaited:
                    self._declared.set()
        self._owe([farewell.SerializeToString() for farewell in self.farewells])
        self._owed.put(None)

    def _upload(self, chunks: Iterator[bytes], context: Any) -> bytes:
        own = dict(context.invocation_metadata())
        self.metadata.append(own)
        context.send_initial_metadata(((SESSION_HEADER, own[SESSION_HEADER]),))
        self.take_upload()
        raw = b""
        for chunk in chunks:
            raw += decode_chunk(chunk, len(raw))
        assert self._declared.wait(HANGS_S)
        self._owe(self.memory.upload(int(own[HANDLE_HEADER]), raw))
        return wire.UploadReceipt(bytes=len(raw)).SerializeToString()

    def _download(self, raw: bytes, context: Any) -> Iterator[bytes]:
        if self.refusal is not None:
            context.abort(*self.refusal)
        value = self.alter(self.memory.beside[wire.DownloadRequest.FromString(raw).fetch])
        chunks = [encode_chunk(start, value[start : start + 4096]) for start in range(0, len(value), 4096)]
        yield from self.arrange(chunks)

    def _owe(self, frames: list[bytes]) -> None:
        for raw in frames:
            self._owed.put(raw)


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.listening.stop(None).wait(HANGS_S)


def test_ops_are_sent_and_values_read(server: Server) -> None:
    with fw.connect(server.target) as session:
        x = session.array(A)
        np.testing.assert_allclose((x * 2 + 1).numpy(timeout=HANGS_S), A * 2 + 1)
    assert server.memory.entries


def test_large_arrays_travel_beside_the_stream_both_ways(server: Server) -> None:
    with fw.connect(server.target) as session:
        x = session.array(LARGE)
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), LARGE)
    assert server.metadata[1][SESSION_HEADER] == (b"s" * 16).hex()


def test_a_large_array_may_change_as_soon_as_its_upload_returns(server: Server) -> None:
    source = LARGE.copy()
    with fw.connect(server.target) as session:
        x = session.array(source)
        source[:] = 0
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), LARGE)


def test_a_large_value_may_be_written_to(server: Server) -> None:
    with fw.connect(server.target) as session:
        value = session.array(LARGE).numpy(timeout=HANGS_S)
    value += 1
    np.testing.assert_array_equal(value, LARGE + 1)


@pytest.mark.parametrize(
    "alter", [lambda value: value[:-1], lambda value: value + b"x", lambda value: value * 2, lambda value: b""]
)
def test_a_value_that_is_not_as_long_as_declared_is_an_error(server: Server, alter: Callable[[bytes], bytes]) -> None:
    server.alter = alter
    with fw.connect(server.target) as session:
        with pytest.raises(fw.SessionLost, match="while the value travelled"):
            session.array(LARGE).numpy(timeout=HANGS_S)
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)


def test_a_value_that_there_is_no_room_for_here_is_an_error_and_the_server_drops_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise MemoryError("no room for a value")

    with fw.connect(server.target) as session:
        x = session.array(LARGE)
        monkeypatch.setattr("fusewire._transport.large_values.np", SimpleNamespace(empty=fail, uint8=np.uint8))
        with pytest.raises(MemoryError, match="no room for a value"):
            x.numpy(timeout=HANGS_S)
        monkeypatch.undo()
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), LARGE)
    assert [type(entry) for entry in server.memory.entries] == [Upload, Fetch, Abandon, Fetch]


@pytest.mark.parametrize(
    "arrange",
    [
        lambda chunks: [*chunks[:3], chunks[4], chunks[3], *chunks[5:]],
        lambda chunks: chunks[::-1],
        lambda chunks: [*chunks[:3], chunks[2], *chunks[4:]],
        lambda chunks: chunks[1:],
        lambda chunks: [*chunks[:3], *chunks[4:]],
        lambda chunks: [*chunks, chunks[-1]],
    ],
    ids=["exchanged", "backwards", "again for another", "the first left out", "one left out", "the last again"],
)
def test_a_value_whose_chunks_are_out_of_order_is_an_error(
    server: Server, arrange: Callable[[list[bytes]], list[bytes]]
) -> None:
    server.arrange = arrange
    with fw.connect(server.target) as session:
        with pytest.raises(fw.SessionLost, match="while the value travelled"):
            session.array(LARGE).numpy(timeout=HANGS_S)
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)


def test_a_download_that_a_limit_forbids_names_the_limit(server: Server) -> None:
    server.refusal = (grpc.StatusCode.RESOURCE_EXHAUSTED, "too_many_calls: 512 calls of this session are running")
    with fw.connect(server.target) as session:
        x = session.array(LARGE)
        with pytest.raises(fw.QuotaExceeded, match=r"^512 calls of this session are running$"):
            x.numpy(timeout=HANGS_S)
        server.refusal = None
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), LARGE)


@pytest.mark.parametrize("details", ["unknown_handle: fetch 1 has no answer to download", "Socket closed", ""])
def test_a_download_that_ends_for_any_other_reason_is_a_broken_connection(server: Server, details: str) -> None:
    server.refusal = (grpc.StatusCode.NOT_FOUND, details)
    with (
        fw.connect(server.target) as session,
        pytest.raises(fw.SessionLost, match="the connection broke while the value travelled"),
    ):
        session.array(LARGE).numpy(timeout=HANGS_S)


def test_whose_download_ends_with_its_session_is_told_why_that_ended(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    goodbye = wire.Goodbye(code=BY_NAME["draining"].code, text="the server is shutting down")

    def farewell_follows(error: grpc.aio.AioRpcError) -> fw.FusewireError:
        server._owe([wire.ServerFrame(goodbye=goodbye).SerializeToString()])
        return _reason_of(error)

    monkeypatch.setattr("fusewire._transport.large_values._reason_of", farewell_follows)
    server.refusal = (grpc.StatusCode.NOT_FOUND, "session_lost: the session has ended")
    with (
        fw.connect(server.target) as session,
        pytest.raises(fw.SessionClosed, match="the server is shutting down"),
    ):
        session.array(LARGE).numpy(timeout=HANGS_S)


def test_the_token_travels_with_every_call(server: Server) -> None:
    with fw.connect(server.target, token="secret") as session:  # noqa: S106  # a made-up one
        session.array(LARGE).numpy(timeout=HANGS_S)
    assert {own["authorization"] for own in server.metadata} == {"Bearer secret"}


def test_a_token_may_end_in_a_newline(server: Server) -> None:
    with fw.connect(server.target, token="secret\n", timeout=HANGS_S):  # noqa: S106  # a made-up one
        assert server.metadata[0]["authorization"] == "Bearer secret"


def test_a_server_is_trusted_for_its_certificate(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    pair = (key.read_bytes(), cert.read_bytes())
    server = Server(grpc.ssl_server_credentials([pair]))
    with fw.connect(server.target, tls_ca=cert, timeout=HANGS_S) as session:
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)
    server.listening.stop(None).wait(HANGS_S)


def test_the_variable_names_the_certificates_to_trust(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate
    monkeypatch.setenv("FUSEWIRE_TLS_CA", str(cert))
    server = Server(grpc.ssl_server_credentials([(key.read_bytes(), cert.read_bytes())]))
    with fw.connect(server.target, timeout=HANGS_S) as session:
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)
    server.listening.stop(None).wait(HANGS_S)


def test_the_certificates_of_the_system_are_those_that_openssl_finds(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    server = Server(grpc.ssl_server_credentials([(key.read_bytes(), cert.read_bytes())]))
    with fw.connect(server.target, tls_ca="system", timeout=HANGS_S) as session:
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)
    server.listening.stop(None).wait(HANGS_S)


def test_without_certificates_of_the_system_tls_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
    with pytest.raises(fw.ConfigurationError, match="SSL_CERT_FILE"):
        fw.connect("127.0.0.1:1", tls_ca="system")


def test_a_token_travels_unencrypted_to_another_machine_only_by_leave() -> None:
    with pytest.raises(fw.ConfigurationError, match=r"unencrypted to gpu-host:7423.*insecure_token=True"):
        fw.connect("gpu-host:7423", token="secret")  # noqa: S106  # a made-up one
    with pytest.raises((fw.SessionLost, fw.WaitTimeout)):
        fw.connect("192.0.2.1:1", token="secret", insecure_token=True, timeout=0.1)  # noqa: S106  # a made-up one


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A listener that gRPC takes for the proxy of every connection."""
    for name in ("grpc_proxy", "https_proxy", "no_grpc_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{listening.getsockname()[1]}")
        yield listening


def test_without_tls_nothing_travels_through_a_proxy(server: Server, proxy: socket.socket) -> None:
    with fw.connect(server.target, token="secret", timeout=HANGS_S) as session:  # noqa: S106  # a made-up one
        np.testing.assert_array_equal(session.array(LARGE).numpy(timeout=HANGS_S), LARGE)
    proxy.setblocking(False)
    with pytest.raises(BlockingIOError):
        proxy.accept()


def test_with_tls_a_proxy_is_asked_for_a_tunnel_and_sees_no_token(
    proxy: socket.socket, certificate: tuple[Path, Path]
) -> None:
    token = "secret"  # noqa: S105  # a made-up one
    with ThreadPoolExecutor(1) as pool:
        connecting = pool.submit(fw.connect, "gpu-host:7423", token=token, tls_ca=certificate[0], timeout=HANGS_S)
        tunnel, _ = proxy.accept()
        with tunnel:
            tunnel.settimeout(20)
            head = tunnel.recv(4096)
        proxy.close()
        with pytest.raises(fw.SessionLost):
            connecting.result(HANGS_S)
    assert head.startswith(b"CONNECT gpu-host:7423 ")
    assert token.encode() not in head


def test_a_file_of_certificates_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(fw.ConfigurationError, match=r"tls_ca = .*absent\.pem"):
        fw.connect("127.0.0.1:1", tls_ca=tmp_path / "absent.pem")


@pytest.mark.parametrize(
    "text", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nno base64\n-----END CERTIFICATE-----\n"]
)
def test_a_file_without_a_certificate_is_named(tmp_path: Path, text: str) -> None:
    broken = tmp_path / "ca.pem"
    broken.write_text(text)
    with pytest.raises(fw.ConfigurationError, match=r"tls_ca = .*ca\.pem: no certificate"):
        fw.connect("127.0.0.1:1", tls_ca=broken, timeout=HANGS_S)


def test_whom_to_trust_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(fw.ConfigurationError, match="one of them"):
        fw.connect("127.0.0.1:1", tls_ca=tmp_path / "ca.pem", credentials=grpc.ssl_channel_credentials())


def test_a_typed_farewell_is_what_the_user_is_told(server: Server) -> None:
    with fw.connect(server.target) as session:
        code = BY_NAME["frame_gap"].code
        server.farewells.append(wire.ServerFrame(goodbye=wire.Goodbye(code=code, text="frame 9 follows 2")))
        with pytest.raises(fw.ProtocolError, match="frame 9 follows 2"):
            session.array(A).numpy(timeout=HANGS_S)


def test_a_server_that_ends_the_stream_has_lost_the_session(server: Server) -> None:
    with fw.connect(server.target) as session:
        x = session.array(A)
        x.numpy(timeout=HANGS_S)
        server.farewells.append(wire.ServerFrame())
        with pytest.raises(fw.FusewireError):
            (x + 1).numpy(timeout=HANGS_S)


@contextmanager
def answering(raw: bytes) -> Iterator[str]:
    """A server that answers every hello with these bytes, and then nothing."""
    listening = grpc.server(ThreadPoolExecutor(2))
    released = threading.Event()

    def session(frames: Iterator[bytes], context: Any) -> Iterator[bytes]:
        yield raw
        released.wait(HANGS_S)

    methods: dict[str, Any] = {"Session": grpc.stream_stream_rpc_method_handler(session)}
    listening.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("fusewire.v1.Fusewire", methods),))
    port = listening.add_insecure_port("127.0.0.1:0")
    listening.start()
    yield f"127.0.0.1:{port}"
    released.set()
    listening.stop(None).wait(HANGS_S)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (wire.ServerFrame(welcome=wire.Welcome(version=99)).SerializeToString(), "version 99"),
        (b"\xff\xff\xff garbage", "not a frame"),
    ],
)
def test_a_server_that_breaks_the_protocol_is_told_as_that(raw: bytes, reason: str) -> None:
    with answering(raw) as target, pytest.raises(fw.ProtocolError, match=reason):
        fw.connect(target, timeout=HANGS_S)


def test_a_failure_in_the_io_thread_ends_the_session_and_is_its_reason(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> float:
        raise MemoryError("no room for a program")

    with fw.connect(server.target) as session:
        x = session.array(A)
        future = (x + 1).future()
        future.result(HANGS_S)
        monkeypatch.setattr(session, "on_tick", fail)
        session._state.transport.want_tick()
        with pytest.raises(fw.SessionLost, match="no room for a program"):
            wait_for_end(session)


def test_a_tick_that_is_due_in_less_than_the_clock_counts_is_not_asked_for_over_and_over(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks: list[int] = []
    looks: list[None] = []
    has_ticked = threading.Event()

    def on_tick() -> float:
        ticks.append(len(looks))
        if len(ticks) == 20:
            has_ticked.set()
        return 0.0004

    def next_frame() -> None:
        looks.append(None)

    with fw.connect(server.target) as session:
        monkeypatch.setattr(session, "next_frame", next_frame)
        monkeypatch.setattr(session, "on_tick", on_tick)
        session._state.transport.want_tick()
        assert has_ticked.wait(HANGS_S)
    assert ticks[19] - ticks[0] <= 3 * 19


def wait_for_end(session: fw.Session) -> None:
    """Raises why it ended."""
    with session._state.lock:
        assert session._state.changed.wait_for(lambda: not session.is_open, 20)
    session.check_open()


@pytest.mark.parametrize(
    "target",
    [7423, "localhost", "localhost:0", "localhost:99999", "http://localhost:7423", "foo bar", "::1:7423", "unix:"],
)
def test_a_target_that_is_none_is_refused_at_once(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(fw.ConfigurationError, match=f"target = {target!r}: expected HOST:PORT with a port from 1 to"):
        fw.connect(target, timeout=HANGS_S)
    monkeypatch.setenv("FUSEWIRE_TARGET", str(target))
    with pytest.raises(fw.ConfigurationError, match=r"FUSEWIRE_TARGET = .*: expected HOST:PORT"):
        fw.connect(timeout=HANGS_S)


@pytest.mark.parametrize("place", ["unix:socket", "[::1]:0"])
def test_a_server_may_be_at_a_socket_of_this_machine_or_an_ipv6_address(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for the paths of sockets are short
    try:
        server = Server(place=place)
    except RuntimeError:
        pytest.skip("this machine has no such addresses")
    with fw.connect(server.target, timeout=HANGS_S) as session:
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)
    server.listening.stop(None).wait(HANGS_S)


def test_no_name_of_a_host_says_how_to_look_it_up() -> None:
    assert _address_of("ipv4:80") == "dns:///ipv4:80"


def test_a_token_that_is_no_text_is_refused() -> None:
    with pytest.raises(fw.ConfigurationError, match="the token is a int, not a string"):
        fw.connect("127.0.0.1:1", token=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("look", [1, 2, 3])
def test_whoever_posts_as_the_io_thread_falls_asleep_is_heard(
    server: Server, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    monkeypatch.setattr("fusewire._stream.session_timer._IDLE_TICK_S", 60)
    with fw.connect(server.target) as session:
        x = session.array(A)
        x.numpy(timeout=HANGS_S)
        next_frame, futures, looks = session.next_frame, [], [look]

        def next_frame_and_a_post() -> bytes | None:
            raw = next_frame()
            if raw is None:
                looks[0] -= 1
            if raw is None and looks[0] == 0:
                poster = threading.Thread(target=lambda: futures.append(x.future()))
                poster.start()
                poster.join(10)
                posted.set()
            return raw

        posted = threading.Event()
        monkeypatch.setattr(session, "next_frame", next_frame_and_a_post)
        while not posted.wait(0.001):
            session._state.transport.wake()
        np.testing.assert_array_equal(futures[0].result(HANGS_S), A)


def test_an_upload_that_nobody_takes_waits_until_the_session_ends(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusewire._transport.grpc_transport._QUEUED_BYTES", 1 << 16)
    taken = threading.Event()
    monkeypatch.setattr(server, "take_upload", lambda: taken.wait(HANGS_S))
    session = fw.connect(server.target)
    with ThreadPoolExecutor(1) as pool:
        upload = pool.submit(session.array, np.zeros(2 << 20))
        with pytest.raises(TimeoutError):
            upload.result(1)
        session.close()
        with pytest.raises(fw.SessionClosed):
            upload.result(HANGS_S)
    taken.set()


def test_where_no_server_listens_connecting_says_so() -> None:
    with pytest.raises(fw.SessionLost, match="unavailable"):
        fw.connect("127.0.0.1:1", timeout=HANGS_S)


def test_a_server_that_does_not_answer_is_given_up() -> None:
    silent = grpc.server(ThreadPoolExecutor(2))
    released = threading.Event()

    def session(frames: Iterator[bytes], context: Any) -> Iterator[bytes]:
        released.wait(HANGS_S)
        return iter(())

    handler = grpc.method_handlers_generic_handler(
        "fusewire.v1.Fusewire", {"Session": grpc.stream_stream_rpc_method_handler(session)}
    )
    silent.add_generic_rpc_handlers((handler,))
    port = silent.add_insecure_port("127.0.0.1:0")
    silent.start()
    with pytest.raises(fw.WaitTimeout, match="did not answer"):
        fw.connect(f"127.0.0.1:{port}", timeout=0.3)
    released.set()
    silent.stop(None).wait(HANGS_S)


def test_giving_up_to_connect_adds_nothing_to_the_time_given_and_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fusewire._session._PARTING_S", 10 * HANGS_S)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        transport = GrpcTransport(f"127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(fw.WaitTimeout, match=r"within 0\.3 s"):
            open_session(transport, timeout=0.3)
        assert transport._has_ended.wait(HANGS_S)


def test_a_session_that_nobody_closes_does_not_keep_the_process(server: Server) -> None:
    program = (
        "import fusewire as fw, numpy as np, time, atexit\n"
        f"x = fw.connect({server.target!r}).array(np.ones(3))\n"
        "print(float((x + 1).sum().numpy(timeout=600)))\n"
        "y = x * 2\n"
        "start = time.monotonic()\n"
        "atexit.register(lambda: print('exits'))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("6.0\nexits\n", "", 0)


def test_a_forked_child_ends_quietly_while_the_parent_goes_on(server: Server) -> None:
    program = (
        "import fusewire as fw, numpy as np, os, sys\n"
        f"session = fw.connect({server.target!r})\n"
        "x = session.array(np.ones(3))\n"
        "x.numpy(timeout=600)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        x + 1\n"
        "    except fw.SessionClosed:\n"
        "        del x\n"
        "        os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "print(float((x + 1).sum().numpy(timeout=600)))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert (ended.stdout, ended.returncode) == ("7\n6.0\n", 0)
    assert "Traceback" not in ended.stderr


def test_a_child_forked_after_connecting_is_told_to_be_spawned_and_the_parent_goes_on(server: Server) -> None:
    program = (
        "import fusewire as fw, numpy as np, os, sys\n"
        f"session = fw.connect({server.target!r})\n"
        "x = session.array(np.ones(3))\n"
        "x.numpy(timeout=600)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        f"        fw.connect({server.target!r}, timeout=600)\n"
        "    except fw.SessionClosed as error:\n"
        "        os._exit(7 if 'spawn' in str(error) else 8)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "print(float((x + 1).sum().numpy(timeout=600)))\n"
    )
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("7\n6.0\n", "", 0)


FORKS_WHILE_CONNECTING = """
import os, signal, threading
import fusewire as fw
from fusewire._transport.grpc_transport import GrpcTransport
has_begun = threading.Event()
def open_and_wait(self, peer):
    has_begun.set()
    threading.Event().wait(600)
GrpcTransport.open = open_and_wait
threading.Thread(target=fw.default_session, daemon=True).start()
assert has_begun.wait(600)
child = os.fork()
if child == 0:
    signal.alarm(600)  # ends a child that hangs
    try:
        fw.zeros(3)
    except fw.SessionClosed as error:
        os._exit(7 if 'spawn' in str(error) else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


def test_a_child_forked_while_a_thread_connects_is_told_to_be_spawned() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS_WHILE_CONNECTING]
    environment = {**os.environ, "FUSEWIRE_TARGET": "127.0.0.1:1"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False, env=environment)
    assert (ended.stdout, ended.stderr) == ("7\n", "")


def test_connecting_waits_for_no_thread_that_connects_elsewhere(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, released = threading.Event(), threading.Event()

    def connect_slowly() -> fw.Session:
        has_begun.set()
        released.wait(HANGS_S)
        raise fw.WaitTimeout("nobody answered")

    monkeypatch.setattr("fusewire._connect._connected_last", [])
    monkeypatch.setattr("fusewire._connect.connect", connect_slowly)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(fw.default_session)
        assert has_begun.wait(HANGS_S)
        with fw.connect(server.target, timeout=HANGS_S):
            assert not waiting.done()
        released.set()
        assert isinstance(waiting.exception(20), fw.WaitTimeout)


def test_arrays_of_the_default_session_need_none_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire._connect._connected_last", [])
    monkeypatch.setenv("FUSEWIRE_TARGET", server.target)
    with fw.default_session():
        np.testing.assert_array_equal((fw.ones(3) + fw.asarray([1, 2, 3])).numpy(timeout=HANGS_S), [2, 3, 4])


def test_the_environment_makes_sessions_debug(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, debugs in (("1", True), ("0", False)):
        monkeypatch.setenv("FUSEWIRE_DEBUG", value)
        with fw.connect(server.target, timeout=HANGS_S) as session:
            assert (session.index_checks is not None) is debugs


def test_without_a_target_the_error_says_where_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEWIRE_TARGET", raising=False)
    with pytest.raises(fw.ConfigurationError, match="FUSEWIRE_TARGET"):
        fw.connect()


def test_no_thread_of_ours_is_left_when_the_interpreter_is_torn_down(server: Server) -> None:
    program = (
        "import atexit, threading\n"
        "def tell():  # registered first, so that it is called last\n"
        "    print([thread.name for thread in threading.enumerate() if 'fusewire' in thread.name])\n"
        "atexit.register(tell)\n"
        "import fusewire as fw, numpy as np\n"
        f"session = fw.connect({server.target!r})\n"
        "print(float(session.array(np.ones(3)).sum().numpy(timeout=600)))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("3.0\n[]\n", "", 0)
