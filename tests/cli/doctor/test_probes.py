"""The probes of a connection, on services that stand for servers of all kinds."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fusewire._transport.token import TOKEN_VARIABLE
from fusewire_cli.doctor import probes
from fusewire_cli.doctor.facts import Certificate, InspectionAnswer
from fusewire_cli.doctor.probes import (
    addresses_of,
    ask_inspection,
    connecting_s,
    handshake,
    open_session,
    outcome_of,
    trusting,
)
from fusewire_protos.address import Address, read_address
from fusewire_protos.errors import ConfigurationError, SessionLost, WaitTimeout
from tests.inspected import TOKEN, inspected_server

NAMES = "subjectAltName=DNS:gpu.example,IP:127.0.0.2"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("certificate")
    cert, key = folder / "cert.pem", folder / "key.pem"
    new = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1")
    named = ("-subj", "/CN=our CA", "-addext", NAMES, "-keyout", key, "-out", cert)
    subprocess.run((*new, *named), check=True, capture_output=True, timeout=30)
    return cert, key


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], Address]]:
    """Serves connections one after another, each by a call of the given function."""
    listening: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serving(answer: Callable[[socket.socket], None]) -> Address:
        listener = socket.create_server(("127.0.0.1", 0))

        def run() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connection.settimeout(10)
                    with connection, suppress(OSError):
                        answer(connection)

        listening.append(listener)
        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return Address("127.0.0.1", listener.getsockname()[1])

    yield serving
    for listener in listening:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join(10)


@pytest.fixture
def silent() -> Iterator[Address]:
    """A service that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Address("127.0.0.1", listening.getsockname()[1])


def speaking_tls(certificate: tuple[Path, Path], protocols: list[str]) -> Callable[[socket.socket], None]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.set_alpn_protocols(protocols)

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1)

    return answer


def read_and_send(connection: socket.socket, answer: bytes) -> None:
    connection.recv(1 << 16)
    connection.sendall(answer)


def test_a_probe_gives_its_fact_or_its_error() -> None:
    assert outcome_of(lambda: 5) == 5
    assert isinstance(outcome_of(lambda: connecting_s(Address("127.0.0.1", 1))), ConnectionRefusedError)


def test_an_error_that_no_probe_should_raise_is_given_too() -> None:
    defect = ValueError("a defect")

    def probe() -> None:
        raise defect

    assert outcome_of(probe) is defect


def test_a_probe_that_does_not_end_is_not_waited_for() -> None:
    released = threading.Event()
    assert isinstance(outcome_of(lambda: released.wait(60), within_s=0.05), TimeoutError)
    released.set()


def test_a_name_has_addresses_or_is_unknown() -> None:
    assert "127.0.0.1" in addresses_of("localhost", 1)
    with pytest.raises(OSError, match=r"not known|failure"):
        addresses_of("nowhere.invalid", 1)


def test_a_unix_socket_is_connected_to(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        assert connecting_s(f"unix:{tmp_path / 's'}") < 4
    with pytest.raises(FileNotFoundError):
        connecting_s(f"unix:{tmp_path / 'absent'}")


@pytest.mark.parametrize("trusts", [False, True])
def test_a_certificate_is_read_though_it_names_another_host(
    serve: Callable[[Callable[[socket.socket], None]], Address], certificate: tuple[Path, Path], trusts: bool
) -> None:
    address = serve(speaking_tls(certificate, ["h2"]))
    found = handshake(address, str(certificate[0]) if trusts else "")
    assert found.speaks_tls
    assert bool(found.refusal) == trusts
    assert found.refusal_code == (64 if trusts else 0)
    assert isinstance(found.certificate, Certificate)
    assert (found.certificate.names, found.certificate.issuer) == (("gpu.example", "127.0.0.2"), "our CA")
    assert found.certificate.valid_until - found.certificate.valid_from == timedelta(days=1)


@pytest.mark.parametrize("protocols", [["h2"], []])
def test_a_trusted_certificate_is_no_refusal(
    serve: Callable[[Callable[[socket.socket], None]], Address],
    certificate: tuple[Path, Path],
    protocols: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = serve(speaking_tls(certificate, protocols))
    connect = socket.create_connection
    there = (address.host, address.port)
    monkeypatch.setattr(socket, "create_connection", lambda _named, timeout: connect(there, timeout))
    found = handshake(Address("gpu.example", address.port), str(certificate[0]))
    assert (found.speaks_tls, found.speaks_http2, found.refusal) == (True, protocols == ["h2"], "")


@pytest.mark.parametrize("answer", [b"", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
@pytest.mark.parametrize("trusted", ["", "file"])
def test_other_bytes_are_no_tls(
    serve: Callable[[Callable[[socket.socket], None]], Address],
    certificate: tuple[Path, Path],
    answer: bytes,
    trusted: str,
) -> None:
    address = serve(lambda connection: read_and_send(connection, answer))
    assert not handshake(address, trusted and str(certificate[0])).speaks_tls


def test_silence_is_a_timeout(silent: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "_ANSWER_S", 0.2)
    for probe in (
        lambda: handshake(silent, ""),
        lambda: ask_inspection(silent, "", ""),
        lambda: open_session(str(silent), ""),
    ):
        assert isinstance(outcome_of(probe), TimeoutError | WaitTimeout | SessionLost)


def test_certificates_that_cannot_be_read_are_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(ConfigurationError, match="no certificate in PEM"):
        trusting(str(tmp_path / "ca.pem"))
    with pytest.raises(ConfigurationError, match="No such file"):
        trusting(str(tmp_path / "absent.pem"))


@pytest.mark.parametrize(("is_guarded", "token", "status"), [(False, "", 200), (True, "", 401), (True, TOKEN, 200)])
def test_inspection_is_asked_with_the_token(
    monkeypatch: pytest.MonkeyPatch, is_guarded: bool, token: str, status: int
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with inspected_server() as inspected:
        inspected.is_guarded = is_guarded
        answer = ask_inspection(read_address(inspected.address), "", token)
    assert answer.status == status
    assert answer.date is not None
    assert abs(answer.date - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_token_is_not_sent_to_another_machine_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    with inspected_server() as inspected:
        inspected.is_guarded = True
        address = read_address(inspected.address)
        connect = socket.create_connection
        monkeypatch.setattr(socket, "create_connection", lambda *_: connect((address.host, address.port)))
        assert ask_inspection(Address("gpu.example", 7424), "", TOKEN).status == 401


@pytest.mark.parametrize("date", ["", "tomorrow", "Tue, 99 Jan 2030 00:00:00 GMT"])
def test_a_date_that_is_none_is_no_date(serve: Callable[[Callable[[socket.socket], None]], Address], date: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nDate: {date}\r\n\r\n".encode()
    address = serve(lambda connection: read_and_send(connection, head))
    assert ask_inspection(address, "", "") == InspectionAnswer(200, None)


def test_what_is_no_http_is_an_error(serve: Callable[[Callable[[socket.socket], None]], Address]) -> None:
    address = serve(lambda connection: read_and_send(connection, b"SSH-2.0-OpenSSH\r\n"))
    with pytest.raises(OSError, match=r"no HTTP: BadStatusLine$"):
        ask_inspection(address, "", "")
