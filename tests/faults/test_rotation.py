"""Tokens and certificates that change under load: sessions go on, and new connections go by the new files."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

import fusewire as fw
from fusewire.testing import ServerProcess
from fusewire_protos.address import read_address
from fusewire_server.access.tokens import Scope, mint, revoke
from tests.bounds import Bounded
from tests.faults.kernel_folders import Folders
from tests.faults.mixed_load import Connect, mixed_load
from tests.faults.server import serving, until
from tests.patience import HANGS_S

pytestmark = pytest.mark.faults

_ROUNDS, _TOKENS = 5, 10
_CERTIFICATES = 25
ENDS_WITHIN_S = 10.0  # a server looks at the tokens of open sessions every 5 s
_REFUSED_WITHIN_S = 3.0  # a second if the file was replaced again and again within a moment, otherwise at once
SEEN_WITHIN_S = 5.0
_ROUNDS_OF_ONE = 2
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def test_sessions_notice_nothing_of_tokens_that_come_and_go(
    token: str, token_file: Path, tmp_path: Path, bounded: Bounded
) -> None:
    """New tokens have sessions that work. When the tokens are revoked, these sessions end, and no others."""
    worst_s = 0.0
    with serving(token_file, environment=Folders(tmp_path).environment) as server:
        connect = Connect(server.grpc, token)
        with mixed_load(connect, connect._replace(rounds=_ROUNDS_OF_ONE)) as seen:
            for _ in range(_ROUNDS):
                worst_s = max(worst_s, _rotate(server, token_file))
    assert seen.failures == []
    bounded("time until the sessions of a revoked token have ended", worst_s, ENDS_WITHIN_S, "s")


def _rotate(server: ServerProcess, token_file: Path) -> float:
    """Mints tokens, opens a session by each, and revokes them. Returns the seconds in which all sessions have ended."""
    tokens = [mint(token_file, tenant="quiet", scope=Scope.USE) for _ in range(_TOKENS)]
    with ExitStack() as opened:
        sessions = [opened.enter_context(fw.connect(server.grpc, token=each)) for each in tokens]
        for number, session in enumerate(sessions):
            assert float(session.array([float(number)])[0]) == number
        for each in tokens:
            revoke(token_file, each.partition(".")[0])
        for each in tokens:
            until(partial(_is_refused, server, each), _REFUSED_WITHIN_S)
        return until(lambda: not any(session.is_open for session in sessions), ENDS_WITHIN_S)


def _is_refused(server: ServerProcess, token: str) -> bool:
    try:
        with fw.connect(server.grpc, token=token):
            return False
    except fw.Unauthenticated:
        return True


def _truncate(path: Path, content: bytes) -> None:
    path.write_bytes(content[: len(content) // 2])


def _vanish(path: Path, _content: bytes) -> None:
    path.unlink()


def _garble(path: Path, content: bytes) -> None:
    path.write_bytes(content[::-1])


@pytest.mark.parametrize("harm", [_truncate, _vanish, _garble])
def test_open_sessions_notice_nothing_of_a_token_file_that_cannot_be_read(
    harm: Callable[[Path, bytes], None],
    token: str,
    token_file: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whoever comes meanwhile is refused, because the change may be a revocation."""
    whole, logged = token_file.read_bytes(), ""
    with serving(token_file, environment=Folders(tmp_path).environment) as server:
        with mixed_load(*[Connect(server.grpc, token)] * 2) as seen:
            for _ in range(10):
                harm(token_file, whole)
                with pytest.raises(fw.Unauthenticated, match="cannot read its token file now"):
                    fw.connect(server.grpc, token=token)
                token_file.write_bytes(whole)
                with fw.connect(server.grpc, token=token):
                    pass
        logged = capfd.readouterr().err
    assert seen.failures == []
    assert logged.count("new callers are refused, and open sessions end at") >= 10
    assert logged.count("the token file can be read again") >= 10


class Certificates:
    """A server's certificate and its key, and how they change. One authority has signed all that there are."""

    def __init__(self, folder: Path) -> None:
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.skip("needs the openssl command")
        self._openssl, self._folder, self._made = openssl, folder, 0
        self.authority, self._authority_key = folder / "ca.pem", folder / "ca.key"
        self.cert, self.key = folder / "cert.pem", folder / "key.pem"
        into = ("-keyout", self._authority_key, "-out", self.authority)
        self._run("req", "-x509", *_NEW_KEY, "-subj", "/CN=authority", *into)
        self.make(self.cert, self.key)

    def make(self, cert: Path, key: Path) -> None:
        """Makes a new pair."""
        self._made += 1
        names = ("-subj", f"/CN=server {self._made}", "-addext", "subjectAltName=IP:127.0.0.1")
        by = ("-CA", self.authority, "-CAkey", self._authority_key)
        self._run("req", "-x509", *_NEW_KEY, *names, *by, "-keyout", key, "-out", cert)

    def replace(self) -> None:
        """Replaces both files, one after the other."""
        cert, key = self._folder / "new.pem", self._folder / "new.key"
        self.make(cert, key)
        cert.replace(self.cert)
        key.replace(self.key)

    def write_in_pieces(self) -> Iterator[None]:
        """Writes both files where they are, and yields whenever they cannot be used."""
        cert, key = self._folder / "new.pem", self._folder / "new.key"
        self.make(cert, key)
        for source, target in ((cert, self.cert), (key, self.key)):
            content = source.read_bytes()
            target.write_bytes(content[: len(content) // 2])
            yield
            target.write_bytes(content)
            if target is self.cert:
                yield

    def _run(self, *arguments: str | Path) -> None:
        subprocess.run((self._openssl, *arguments), check=True, capture_output=True, timeout=HANGS_S)


@contextmanager
def _secured(token_file: Path, certificates: Certificates, folders: Folders) -> Iterator[ServerProcess]:
    tls = ("--tls-cert", str(certificates.cert), "--tls-key", str(certificates.key))
    with serving(token_file, environment=folders.environment, more=tls) as server:
        yield server


def _shown(target: str) -> bytes:
    """Returns the certificate that a server shows to a new connection."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(read_address(target), timeout=HANGS_S))


def _is_shown(server: ServerProcess, cert: bytes) -> bool:
    return all(_shown(target) == ssl.PEM_cert_to_DER_cert(cert.decode()) for target in (server.grpc, server.http))


def test_sessions_notice_nothing_of_certificates_that_change(
    token: str, token_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], bounded: Bounded
) -> None:
    """New connections see the new one; while its files are half written, they see the old one."""
    certificates, worst_s, logged = Certificates(tmp_path), 0.0, ""
    with _secured(token_file, certificates, Folders(tmp_path)) as server:
        connect = Connect(server.grpc, token, tls_ca=str(certificates.authority))
        with mixed_load(connect, connect._replace(rounds=1)) as seen:
            for number in range(_CERTIFICATES):
                old = certificates.cert.read_bytes()
                if number % 2:
                    certificates.replace()
                else:
                    for _ in certificates.write_in_pieces():
                        assert _is_shown(server, old)
                new = certificates.cert.read_bytes()
                worst_s = max(worst_s, until(partial(_is_shown, server, new), SEEN_WITHIN_S))
        logged = capfd.readouterr().err
    assert seen.failures == []
    bounded("time until new connections see a new certificate", worst_s, SEEN_WITHIN_S, "s")
    assert logged.count("the changed certificate cannot be used") >= _CERTIFICATES // 2
