"""Probes a connection: each probe tries one step of it, and returns what it found out.

A probe raises OSError or FusewireError if the step fails. No probe judges what it finds.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, TypeVar

import fusewire
from fusewire._transport.credentials import system_roots
from fusewire._transport.inspection import SYSTEM_ROOTS
from fusewire._transport.token import UNIX_PREFIX
from fusewire_cli.doctor.facts import Certificate, Handshake, InspectionAnswer, OpenedSession
from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError

STEP_S = 5.0
_ANSWER_S = 4.0  # shorter than a step, so that the step can say what did not answer
_NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python does not name

_Fact = TypeVar("_Fact")


def outcome_of(probe: Callable[[], _Fact], within_s: float = STEP_S) -> _Fact | Exception:
    """Runs a probe, and returns the error if it fails. After `within_s` seconds returns TimeoutError.

    The probe has a thread of its own, because a look-up of a name can neither be interrupted nor limited.
    """
    outcomes: queue.SimpleQueue[_Fact | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            outcomes.put(probe())
        except Exception as error:  # noqa: BLE001 - a defect too would otherwise look like a step without an answer
            outcomes.put(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return outcomes.get(timeout=within_s)
    except queue.Empty:
        return TimeoutError(f"no answer within {within_s:.0f} s")


def addresses_of(host: str, port: int) -> list[str]:
    """Returns the IP addresses of a host."""
    return sorted({str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)})


def connecting_s(target: Address | str) -> float:
    """Returns the time in seconds in which an address, or unix:path, takes a connection."""
    began_s = time.monotonic()
    if isinstance(target, str):
        with socket.socket(socket.AF_UNIX) as local:
            local.settimeout(_ANSWER_S)
            local.connect(target.removeprefix(UNIX_PREFIX))
    else:
        socket.create_connection((target.host, target.port), timeout=_ANSWER_S).close()
    return time.monotonic() - began_s


def handshake(address: Address, trusted: str) -> Handshake:
    """Tries TLS. `trusted` is a file of certificates, "system", or "" to trust any certificate."""
    context = trusting(trusted) if trusted else _trusting_any()
    try:
        with _secured(address, context) as secured:
            answer = secured.getpeercert()
            speaks_http2 = secured.selected_alpn_protocol() == "h2"
    except ssl.SSLCertVerificationError as refusal:
        return Handshake(True, False, _presented(address), refusal.verify_message, refusal.verify_code)
    except (ssl.SSLError, ConnectionError):  # what is no TLS is answered by other bytes or by the end
        return Handshake(speaks_tls=False, speaks_http2=False)
    return Handshake(True, speaks_http2, _certificate(answer) if answer else _presented(address))


def trusting(trusted: str) -> ssl.SSLContext:
    """Returns a context that trusts the certificates in a file, or "system". Raises ConfigurationError."""
    path = system_roots() if trusted == SYSTEM_ROOTS else Path(trusted)
    try:
        context = ssl.create_default_context(cafile=path)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # because gRPC is not as strict
        return context
    except ssl.SSLError:
        raise ConfigurationError(f"{path}: no certificate in PEM, or one that cannot be read") from None
    except OSError as reason:
        raise ConfigurationError(f"{path}: {reason.strerror}") from None


def open_session(target: str, trusted: str) -> OpenedSession:
    """Opens a session and closes it."""
    began_s = time.monotonic()
    with fusewire.connect(target, tls_ca=trusted or None, timeout=_ANSWER_S) as session:
        return OpenedSession(time.monotonic() - began_s, session.server, session.backend)


def ask_inspection(address: Address, trusted: str, token: str) -> InspectionAnswer:
    """Asks for the statistics, and reads the head of the answer. A token travels only by TLS or to this machine."""
    connection = (
        HTTPSConnection(*address, timeout=_ANSWER_S, context=trusting(trusted))
        if trusted
        else HTTPConnection(*address, timeout=_ANSWER_S)
    )
    is_safe = bool(trusted) or address.is_loopback()
    try:
        connection.request(
            "GET", "/v1/stats", headers={"Authorization": f"Bearer {token}"} if token and is_safe else {}
        )
        answer = connection.getresponse()
        return InspectionAnswer(answer.status, _date(answer.headers["date"]))
    except HTTPException as reason:  # its text may be the bytes of another protocol
        raise OSError(f"it speaks no HTTP: {type(reason).__name__}") from None
    finally:
        connection.close()


@contextmanager
def _secured(address: Address, context: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((address.host, address.port), timeout=_ANSWER_S) as plain,
        context.wrap_socket(plain, server_hostname=address.host) as secured,
    ):
        yield secured


def _presented(address: Address) -> Certificate | None:
    """Returns the certificate that a server presents, be it trusted or not, or None if it cannot be read.

    Python reads the fields of a trusted certificate only. So the certificate is trusted for a second handshake, in
    which nothing but the handshake is sent.
    """
    try:
        with _secured(address, _trusting_any()) as secured:
            raw = secured.getpeercert(binary_form=True)
        context = _trusting_any()
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=raw or b"")
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(_NO_CHECK_TIME)
        with _secured(address, context) as secured:
            return _certificate(secured.getpeercert() or {})
    except (OSError, LookupError, ValueError):
        return None


def _trusting_any() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _certificate(answer: dict[str, Any]) -> Certificate:
    """Reads what `getpeercert` returns."""
    issuer = {name: value for pair in answer["issuer"] for name, value in pair}
    return Certificate(
        names=tuple(value for _, value in answer.get("subjectAltName", ())),
        valid_from=datetime.fromtimestamp(ssl.cert_time_to_seconds(answer["notBefore"]), UTC),
        valid_until=datetime.fromtimestamp(ssl.cert_time_to_seconds(answer["notAfter"]), UTC),
        issuer=issuer.get("commonName") or issuer.get("organizationName") or "nobody by name",
    )


def _date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (TypeError, ValueError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
