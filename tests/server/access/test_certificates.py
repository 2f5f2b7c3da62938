"""The certificate of a server: loaded, and loaded again when its files change, by gRPC and by the inspection."""

from __future__ import annotations

import logging
import ssl
import subprocess
from pathlib import Path

import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess
from fusewire_protos.errors import ConfigurationError
from fusewire_server.access.certificates import CertificateFiles


def make(cert: Path, key: Path) -> None:
    command = (
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "1",
    )
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run((*command, *names, "-keyout", key, "-out", cert), check=True, capture_output=True, timeout=30)


def test_files_that_have_not_changed_are_not_loaded_again(certificate: tuple[Path, Path]) -> None:
    files = CertificateFiles(*certificate)
    assert files.renew() is None
    assert files.pair == (certificate[1].read_bytes(), certificate[0].read_bytes())


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


def test_a_running_server_uses_a_changed_certificate(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    arguments = ("--tls-cert", str(cert), "--tls-key", str(key))
    with serve_subprocess("null", arguments=arguments) as server:
        with fw.connect(server.grpc, tls_ca=cert, timeout=20) as session:
            session.array([1.0]).numpy(timeout=20)
            make(cert, key)
            session.array([1.0]).numpy(timeout=20)
        with fw.connect(server.grpc, tls_ca=cert, timeout=20) as session:
            session.array([1.0]).numpy(timeout=20)
        host, port = server.http.split(":")
        assert ssl.get_server_certificate((host, int(port))).split() == cert.read_text(encoding="utf-8").split()
