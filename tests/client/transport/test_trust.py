"""Whom a client trusts, and to whom it sends its token."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import grpc
import numpy as np
import pytest

import fusewire as fw
from tests.client.transport.grpc_server import LARGE, A, Server
from tests.patience import HANGS_S

TOKEN = "secret"  # noqa: S105 - a made-up one


def test_the_token_travels_with_every_call(server: Server) -> None:
    with fw.connect(server.target, token=TOKEN) as session:
        session.array(LARGE).numpy(timeout=HANGS_S)
    assert {own["authorization"] for own in server.metadata} == {f"Bearer {TOKEN}"}


def test_a_token_may_end_in_a_newline(server: Server) -> None:
    with fw.connect(server.target, token=f"{TOKEN}\n", timeout=HANGS_S):
        assert server.metadata[0]["authorization"] == f"Bearer {TOKEN}"


def test_a_token_that_is_no_text_is_refused() -> None:
    with pytest.raises(fw.ConfigurationError, match="the token is a int, not a string"):
        fw.connect("127.0.0.1:1", token=5)  # type: ignore[arg-type]


def test_a_token_travels_unencrypted_to_another_machine_only_by_leave() -> None:
    with pytest.raises(fw.ConfigurationError, match=r"unencrypted to gpu-host:7423.*insecure_token=True"):
        fw.connect("gpu-host:7423", token=TOKEN)
    with pytest.raises((fw.SessionLost, fw.WaitTimeout)):
        fw.connect("192.0.2.1:1", token=TOKEN, insecure_token=True, timeout=0.1)


def server_with(certificate: tuple[Path, Path]) -> closing[Server]:
    """A server that shows this certificate."""
    cert, key = certificate
    return closing(Server(grpc.ssl_server_credentials([(key.read_bytes(), cert.read_bytes())])))


def test_a_server_is_trusted_for_its_certificate(certificate: tuple[Path, Path]) -> None:
    cert, _ = certificate
    with server_with(certificate) as server, fw.connect(server.target, tls_ca=cert, timeout=HANGS_S) as session:
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)


def test_the_variable_names_the_certificates_to_trust(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, _ = certificate
    monkeypatch.setenv("FUSEWIRE_TLS_CA", str(cert))
    with server_with(certificate) as server, fw.connect(server.target, timeout=HANGS_S) as session:
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)


def test_the_certificates_of_the_system_are_those_that_openssl_finds(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, _ = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    with server_with(certificate) as server, fw.connect(server.target, tls_ca="system", timeout=HANGS_S) as session:
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)


def test_without_certificates_of_the_system_tls_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
    with pytest.raises(fw.ConfigurationError, match="SSL_CERT_FILE"):
        fw.connect("127.0.0.1:1", tls_ca="system")


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
    with fw.connect(server.target, token=TOKEN, timeout=HANGS_S) as session:
        np.testing.assert_array_equal(session.array(LARGE).numpy(timeout=HANGS_S), LARGE)
    proxy.setblocking(False)
    with pytest.raises(BlockingIOError):
        proxy.accept()


def test_with_tls_a_proxy_is_asked_for_a_tunnel_and_sees_no_token(
    proxy: socket.socket, certificate: tuple[Path, Path]
) -> None:
    with ThreadPoolExecutor(1) as pool:
        connecting = pool.submit(fw.connect, "gpu-host:7423", token=TOKEN, tls_ca=certificate[0], timeout=HANGS_S)
        tunnel, _ = proxy.accept()
        with tunnel:
            tunnel.settimeout(20)
            head = tunnel.recv(4096)
        proxy.close()
        with pytest.raises(fw.SessionLost):
            connecting.result(HANGS_S)
    assert head.startswith(b"CONNECT gpu-host:7423 ")
    assert TOKEN.encode() not in head
