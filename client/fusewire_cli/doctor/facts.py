"""What the probes of a connection find out, as plain data."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Certificate(NamedTuple):
    """What a server's certificate says."""

    names: tuple[str, ...]
    valid_from: datetime
    valid_until: datetime
    issuer: str


class Handshake(NamedTuple):
    """How the other end took a TLS handshake.

    `refusal` says why the certificate is not trusted, in the words of OpenSSL, and `refusal_code` is OpenSSL's number
    for it. Both are empty if the certificate is trusted, or was not to be checked.
    """

    speaks_tls: bool
    speaks_http2: bool
    certificate: Certificate | None = None  # None also if it could not be read
    refusal: str = ""
    refusal_code: int = 0


class OpenedSession(NamedTuple):
    """A session that was opened and closed again."""

    took_s: float
    server: str
    backend: str


class InspectionAnswer(NamedTuple):
    """The head of the answer to `GET /v1/stats`."""

    status: int
    date: datetime | None  # the time at the server; None if the answer does not tell it
