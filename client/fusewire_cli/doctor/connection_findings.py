"""Judges what the probes of a connection have found out, and says what to do. Pure.

A probe that failed has raised an error; the error is then judged in place of the fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fusewire_cli.doctor.facts import Certificate, Handshake, InspectionAnswer, OpenedSession
from fusewire_cli.doctor.finding import Finding, State
from fusewire_cli.text import duration
from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError, ProtocolError, Unauthenticated
from fusewire_protos.frames import PROTOCOL_VERSION

OK, FAILED, UNKNOWN = State

_MOST_CLOCK_DIFFERENCE_S = 5.0
# OpenSSL's numbers of reasons not to trust a certificate.
_NOT_YET_VALID, _EXPIRED = 9, 10
_OTHER_NAME, _OTHER_IP_ADDRESS = 62, 64
# Refusals of Fusewire: the Host header is not one of a server on loopback, or the engine thread did not answer in time.
_OTHER_HOST, _BUSY = 421, 503

_MINT = "set FUSEWIRE_TOKEN to a token of scope use; `fusewire token mint` makes one on the server"
_NO_TLS = "leave out --tls-ca and FUSEWIRE_TLS_CA, or start the server with --tls-cert and --tls-key"
_TLS = "name the certificates to trust by --tls-ca FILE or FUSEWIRE_TLS_CA; `system` means those of the system"
_GRPC_PORT = "is this the gRPC port of a Fusewire server (7423), and not its HTTP port (7424)?"


def name_finding(host: str, found: Sequence[str] | Exception) -> Finding:
    """Judges the addresses that a name has."""
    if isinstance(found, TimeoutError):
        return Finding("name", FAILED, f"the look-up of {host} got no answer", "is the DNS server reachable?")
    if isinstance(found, Exception):
        return Finding("name", FAILED, f"{host}: {_reason(found)}", "check the spelling, and the DNS server")
    return Finding("name", OK, f"{host} is {', '.join(found)}")


def port_finding(target: str, took_s: float | Exception) -> Finding:
    """Judges the time in which a port, or a Unix socket, took a connection."""
    if isinstance(took_s, TimeoutError):
        remedy = "check the firewall between here and there, and the address"
        return Finding("port", FAILED, f"nothing answers at {target}", remedy)
    if isinstance(took_s, Exception):
        remedy = "does the server run, and does its listen.grpc let others connect?"
        return Finding("port", FAILED, f"{target}: {_reason(took_s)}", remedy)
    return Finding("port", OK, f"{target} answers in {duration(took_s)}")


def tls_finding(address: Address, trusted: str, found: Handshake | Exception, now: datetime) -> Finding:
    """Judges a handshake. `trusted` is a file of certificates, "system", or "" if TLS is not asked for."""
    if isinstance(found, ConfigurationError):
        return Finding("tls", FAILED, str(found), _TLS)
    if isinstance(found, Exception):
        return Finding("tls", FAILED if trusted else UNKNOWN, f"no answer to a handshake: {_reason(found)}", _GRPC_PORT)
    if not trusted:
        return _unasked_tls(found)
    if not found.speaks_tls:
        return Finding("tls", FAILED, f"{address} does not speak TLS", _NO_TLS)
    if found.refusal:
        text = f"{found.refusal}; {_described(found.certificate)}"
        return Finding("tls", FAILED, text, _trust_remedy(address, trusted, found, now))
    if not found.speaks_http2:
        return Finding("tls", FAILED, f"{address} speaks TLS, and no HTTP/2", _GRPC_PORT)
    return Finding("tls", OK, f"{_described(found.certificate)}; trusted by {_certificates(trusted)}")


def session_findings(
    opened: OpenedSession | Exception, *, sends_token: bool, inspection: InspectionAnswer | Exception
) -> list[Finding]:
    """Judges the attempt to open a session. What the inspection answers tells the scope of the token."""
    if isinstance(opened, Unauthenticated | ConfigurationError):
        return [Finding("token", FAILED, str(opened), _MINT if isinstance(opened, Unauthenticated) else "")]
    if isinstance(opened, ProtocolError):
        remedy = "install the version of the server on this machine: pip install fusewire==VERSION"
        return [Finding("version", FAILED, str(opened), remedy)]
    if isinstance(opened, Exception):
        return [Finding("session", FAILED, _reason(opened), _GRPC_PORT)]
    return [
        Finding("token", OK, _scope(inspection) if sends_token else "the server asks for none"),
        Finding("version", OK, f"protocol {PROTOCOL_VERSION}, of {opened.server}"),
        Finding("session", OK, f"opened in {duration(opened.took_s)} on backend {opened.backend}"),
    ]


def inspection_findings(
    address: Address, answer: InspectionAnswer | Exception, now: datetime, *, is_named: bool
) -> list[Finding]:
    """Judges the inspection and the server's clock. If the user did not name the inspection, it may be absent."""
    state = FAILED if is_named else UNKNOWN
    remedy = "name the server's HTTP address by --http HOST:PORT; by default it listens on its own machine only"
    if isinstance(answer, Exception):
        text = f"{address}: {_reason(answer)}; so the clocks are not compared"
        return [Finding("inspection", state, text, remedy)]
    if answer.status not in {200, 401, 403, _OTHER_HOST, _BUSY} or answer.date is None:
        text = f"{address} answers {answer.status} as no Fusewire server does; so the clocks are not compared"
        return [Finding("inspection", state, text, remedy)]
    return [_answer_finding(address, answer.status, state), _clock_finding(answer.date, now)]


def _answer_finding(address: Address, status: int, state: State) -> Finding:
    if status == _OTHER_HOST:
        text = f"{address} answers only to requests for localhost"
        return Finding("inspection", state, text, f"name it by --http localhost:{address.port}")
    if status == _BUSY:
        return Finding("inspection", UNKNOWN, f"{address} answers that the server is busy", "try again later")
    may_read = "" if status == 200 else ", and asks for a token of scope inspect"
    return Finding("inspection", OK, f"{address} answers{may_read}")


def _clock_finding(there: datetime, now: datetime) -> Finding:
    ahead_s = (there - now).total_seconds()
    if abs(ahead_s) <= _MOST_CLOCK_DIFFERENCE_S:
        return Finding("clock", OK, f"the clocks differ by less than {_MOST_CLOCK_DIFFERENCE_S:.0f} s")
    text = f"the server's clock is {duration(abs(ahead_s))} {'ahead' if ahead_s > 0 else 'behind'}"
    return Finding("clock", FAILED, text, "set the clocks: tokens and certificates have dates")


def _unasked_tls(found: Handshake) -> Finding:
    if found.speaks_tls:
        text = f"the server speaks TLS, and this client was not told to: {_described(found.certificate)}"
        return Finding("tls", FAILED, text, _TLS)
    return Finding("tls", OK, "none: what is sent is not encrypted")


def _trust_remedy(address: Address, trusted: str, found: Handshake, now: datetime) -> str:
    if found.refusal_code in {_OTHER_NAME, _OTHER_IP_ADDRESS}:
        return f"connect by a name of the certificate, or give the server one for {address.host}"
    if found.refusal_code in {_NOT_YET_VALID, _EXPIRED}:
        return f"give the server a new certificate, unless the clock of this machine is wrong: {now:%Y-%m-%d %H:%M} UTC"
    return f"{_certificates(trusted)} must hold the one that signed the server's; --tls-ca names another file"


def _certificates(trusted: str) -> str:
    return "the certificates of the system" if trusted == "system" else f"the certificates in {trusted}"


def _described(certificate: Certificate | None) -> str:
    if certificate is None:
        return "its certificate cannot be read"
    names = ", ".join(certificate.names) or "no name"
    dates = f"{certificate.valid_from:%Y-%m-%d} to {certificate.valid_until:%Y-%m-%d}"
    return f"certificate for {names}, valid {dates}, signed by {certificate.issuer}"


def _scope(inspection: InspectionAnswer | Exception) -> str:
    status = None if isinstance(inspection, Exception) else inspection.status
    if status == 200:
        return "accepted: it may open sessions and read inspection"
    return "accepted: it may open sessions" + (", and not read inspection: scope use" if status == 403 else "")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
