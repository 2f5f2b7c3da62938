"""The certificate of a server: loaded, and loaded again when its files change, by gRPC and by the inspection."""

from __future__ import annotations

import logging
import os
import signal
import ssl
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess
from fusewire_protos.errors import ConfigurationError
from fusewire_server.access.certificates import CertificateFiles, expires_at_s
from tests.patience import HANGS_S

P_256 = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def make(cert: Path, key: Path, kind: tuple[str, ...] = P_256, days: str = "1") -> None:
    command = ("openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-days", days)
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run((*command, *names, "-keyout", key, "-out", cert), check=True, capture_output=True, timeout=HANGS_S)


@pytest.mark.parametrize("days", ["1", "20000"])
def test_a_certificate_tells_until_when_it_is_valid(certificate: tuple[Path, Path], days: str) -> None:
    """From 2050 on certificates hold the year in four digits instead of two."""
    make(*certificate, days=days)
    command = ("openssl", "x509", "-noout", "-enddate", "-dateopt", "iso_8601", "-in", certificate[0])
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=HANGS_S).stdout
    assert expires_at_s(certificate[0]) == datetime.fromisoformat(printed.strip().removeprefix("notAfter=")).timestamp()


def test_of_what_is_no_certificate_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    (tmp_path / "bad.pem").write_text("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n")
    assert [expires_at_s(tmp_path / name) for name in ("none.pem", "bad.pem", "missing.pem")] == [None] * 3


def test_files_that_have_not_changed_are_not_loaded_again(certificate: tuple[Path, Path]) -> None:
    files = CertificateFiles(*certificate)
    assert files.renew() is None
    assert files.pair == (certificate[1].read_bytes(), certificate[0].read_bytes())


@pytest.mark.parametrize("kind", [("rsa:2048",), P_256, ("ec", "-pkeyopt", "ec_paramgen_curve:P-384")])
def test_the_keys_that_grpc_uses_are_loaded(certificate: tuple[Path, Path], kind: tuple[str, ...]) -> None:
    make(*certificate, kind)
    assert CertificateFiles(*certificate).pair.chain == certificate[0].read_bytes()


@pytest.mark.parametrize("kind", [("ed25519",), ("ec", "-pkeyopt", "ec_paramgen_curve:P-521")])
def test_a_key_that_grpc_does_not_use_is_refused(
    certificate: tuple[Path, Path], caplog: pytest.LogCaptureFixture, kind: tuple[str, ...]
) -> None:
    files = CertificateFiles(*certificate)
    make(*certificate, kind)
    with pytest.raises(ConfigurationError, match="RSA, P-256 or P-384"):
        CertificateFiles(*certificate)
    assert files.renew() is None
    assert "RSA, P-256 or P-384" in caplog.text


def test_changed_files_are_loaded_once(certificate: tuple[Path, Path]) -> None:
    files, old = CertificateFiles(*certificate), certificate[0].read_bytes()
    make(*certificate)
    new = files.renew()
    assert new is not None
    assert new.chain == certificate[0].read_bytes() != old
    assert files.renew() is None


def test_half_a_change_keeps_the_old_pair_until_the_other_half_comes(
    certificate: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = certificate
    files = CertificateFiles(cert, key)
    old, (new_cert, new_key) = files.pair, (tmp_path / "new.pem", tmp_path / "new.key")
    make(new_cert, new_key)
    new_cert.replace(cert)
    with caplog.at_level(logging.ERROR):
        assert files.renew() is None
    assert (files.pair, len(caplog.records)) == (old, 1)
    new_key.replace(key)
    assert files.renew() == (key.read_bytes(), cert.read_bytes())


def rewrite(path: Path, content: bytes) -> None:
    """Writes a file so that it looks as if it were unchanged."""
    status = path.stat()
    path.write_bytes(content.ljust(status.st_size))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_unnoticed(certificate: tuple[Path, Path], folder: Path) -> bytes:
    """Replaces a certificate and its key by others that look like them. Returns the new chain."""
    new = folder / "new.pem", folder / "new.key"
    make(*new)
    for old_path, new_path in zip(certificate, new, strict=True):
        rewrite(old_path, new_path.read_bytes())
    return new[0].read_bytes()


def pad(paths: tuple[Path, Path]) -> None:
    """Makes files longer than other certificates and keys are."""
    for path in paths:
        path.write_bytes(path.read_bytes().ljust(4096))


def test_told_to_read_again_files_that_look_unchanged_are_read(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    pad(certificate)
    files = CertificateFiles(*certificate)
    new_chain = replace_unnoticed(certificate, tmp_path)
    assert files.renew() is None
    files.read_again()
    renewed = files.renew()
    assert renewed is not None
    assert renewed.chain.strip() == new_chain.strip()
    assert files.renew() is None


@pytest.mark.parametrize("harm", ["missing", "no certificate", "another key"])
def test_files_that_cannot_be_used_are_refused_by_name(
    harm: str, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = certificate
    if harm == "missing":
        cert.unlink()
    elif harm == "no certificate":
        cert.write_text("none", encoding="utf-8")
    else:
        make(tmp_path / "other.pem", key)
    with pytest.raises(ConfigurationError, match=r"listen\.tls_cert = .*, listen\.tls_key = "):
        CertificateFiles(cert, key)


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_its_passphrase(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    command = ("openssl", "ec", "-aes256", "-passout", "pass:secret", "-in", key, "-out", key)
    subprocess.run(command, check=True, capture_output=True, timeout=HANGS_S)
    with pytest.raises(ConfigurationError, match=r"listen\.tls_key = .*: the key is encrypted, and the server needs a"):
        CertificateFiles(cert, key)


def test_a_running_server_uses_a_changed_certificate(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    arguments = ("--tls-cert", str(cert), "--tls-key", str(key))
    with serve_subprocess("null", arguments=arguments) as server:
        with fw.connect(server.grpc, tls_ca=cert, timeout=HANGS_S) as session:
            session.array([1.0]).numpy(timeout=HANGS_S)
            make(cert, key)
            session.array([1.0]).numpy(timeout=HANGS_S)
        with fw.connect(server.grpc, tls_ca=cert, timeout=HANGS_S) as session:
            session.array([1.0]).numpy(timeout=HANGS_S)
        assert presented(server.http) == cert.read_bytes().split()


def presented(address: str) -> list[bytes]:
    """Returns the words of the certificate that a server presents."""
    host, port = address.split(":")
    return ssl.get_server_certificate((host, int(port)), timeout=HANGS_S).encode().split()


def test_sighup_makes_a_running_server_read_its_certificate_again(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    pad(certificate)
    cert, key = certificate
    arguments = ("--tls-cert", str(cert), "--tls-key", str(key))
    with serve_subprocess("null", arguments=arguments) as server:
        old = presented(server.http)
        replace_unnoticed(certificate, tmp_path)
        assert presented(server.http) == old
        os.kill(server.pid, signal.SIGHUP)
        ends_at_s = time.monotonic() + HANGS_S
        while presented(server.http) == old:
            assert time.monotonic() < ends_at_s
        assert presented(server.http) == cert.read_bytes().split()
        with fw.connect(server.grpc, tls_ca=cert, timeout=HANGS_S) as session:
            session.array([1.0]).numpy(timeout=HANGS_S)
