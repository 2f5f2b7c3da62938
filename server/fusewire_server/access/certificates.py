"""Loads the server's certificate, and loads it again when its files change, so that it can be rotated in service."""

from __future__ import annotations

import base64
import logging
import re
import ssl
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

import grpc

from fusewire_protos.errors import ConfigurationError
from fusewire_server.config.config import Listen

_log = logging.getLogger(__name__)

# The types of key that gRPC uses, as they stand in a certificate: RSA, P-256 and P-384.
_KEY_TYPES = tuple(map(bytes.fromhex, ("06092a864886f70d010101", "06082a8648ce3d030107", "06052b81040022")))

# How a certificate holds the two times between which it is valid (RFC 5280, 4.1.2.5): the second one, in either form.
_TIME = rb"(?:\x17\x0d%s|\x18\x0f%s)"
_VALIDITY = re.compile(
    rb"\x30." + _TIME % (rb"\d{12}Z", rb"\d{14}Z") + _TIME % (rb"(\d{12}Z)", rb"(\d{14}Z)"), re.DOTALL
)

Signature = tuple[tuple[int, int, int], ...]


class CertificatePair(NamedTuple):
    """A private key and its chain of certificates, both PEM."""

    key: bytes
    chain: bytes


class CertificateFiles:
    """The files of a certificate and its key. Any thread may call it.

    `pair` is what the files held when they were read last, and `tls` makes servers of Python speak TLS with it.
    """

    def __init__(self, cert: Path, key: Path) -> None:
        """Raises ConfigurationError if the files cannot be read or used, or do not belong together."""
        self.cert, self.key = cert, key
        self._lock = threading.Lock()  # guards the next fields
        try:
            self._signature = self._sign()
            self.pair, self.tls = self._read()
        except (OSError, ssl.SSLError) as reason:
            raise ConfigurationError(f"listen.tls_cert = {cert}, listen.tls_key = {key}: {reason}") from None

    def renew(self) -> CertificatePair | None:
        """Returns the new pair if the files have changed since the last call, otherwise None.

        If the new files cannot be used, perhaps because only one is written yet, logs the reason and returns None.
        """
        with self._lock:
            try:
                signature = self._sign()
                if signature == self._signature:
                    return None
                self._signature = signature
                self.pair, self.tls = self._read()
            except (OSError, ssl.SSLError) as reason:
                _log.error("the changed certificate cannot be used: %s", reason)
                return None
        _log.info("the certificate was loaded again")
        return self.pair

    def read_again(self) -> None:
        """Lets the next `renew` read the files even if they look unchanged."""
        with self._lock:
            self._signature = ()

    def _sign(self) -> Signature:
        statuses = [path.stat() for path in (self.cert, self.key)]
        return tuple((status.st_mtime_ns, status.st_size, status.st_ino) for status in statuses)

    def _read(self) -> tuple[CertificatePair, ssl.SSLContext]:
        # A new context each time, because a context holds a certificate for each type of key, and would go on using an
        # old certificate of another type.
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.cert, self.key, _refuse_encrypted)  # gRPC would only log a mismatch
        pair = CertificatePair(self.key.read_bytes(), self.cert.read_bytes())
        _refuse_other_keys(pair.chain)
        return pair, tls


def _refuse_encrypted() -> NoReturn:
    """Answers OpenSSL, which would otherwise ask for a passphrase on the terminal."""
    raise OSError("the key is encrypted, and the server needs a key without a passphrase")


def _refuse_other_keys(chain: bytes) -> None:
    """Raises OSError for a key that gRPC does not use: it would close each handshake without a word."""
    own = chain.partition(b"-----BEGIN CERTIFICATE-----")[2].partition(b"-----END CERTIFICATE-----")[0]
    if own and not any(each in base64.b64decode(own) for each in _KEY_TYPES):
        raise OSError("the key must be RSA, P-256 or P-384, because gRPC uses no other")


def expires_at_s(cert: Path) -> float | None:
    """Returns the Unix time until which the first certificate of a PEM file is valid. None: it cannot be read."""
    try:
        own = cert.read_bytes().partition(b"-----BEGIN CERTIFICATE-----")[2].partition(b"-----END CERTIFICATE-----")[0]
        validity = _VALIDITY.search(base64.b64decode(own))
        if validity is None:
            return None
        short, long = validity.groups()
        text = (short or long).decode()
        until = datetime.strptime(text, "%y%m%d%H%M%SZ" if short else "%Y%m%d%H%M%SZ")  # noqa: DTZ007 - as below
    except (OSError, ValueError):
        return None
    return until.replace(tzinfo=UTC).timestamp()


def server_credentials(files: CertificateFiles) -> grpc.ServerCredentials:
    """Returns gRPC's credentials, which ask for a changed certificate at each handshake."""

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        pair = files.renew()
        return None if pair is None else grpc.ssl_server_certificate_configuration([pair])

    first = grpc.ssl_server_certificate_configuration([files.pair])
    return grpc.dynamic_ssl_server_credentials(first, fetch)  # type: ignore[arg-type]  # None: nothing has changed


def certificate_of(listen: Listen) -> CertificateFiles | None:
    """Reads the certificate that the settings name, if any. Raises ConfigurationError."""
    if listen.tls_cert is None or listen.tls_key is None:
        return None
    return CertificateFiles(listen.tls_cert, listen.tls_key)
