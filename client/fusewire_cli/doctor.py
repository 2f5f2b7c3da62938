"""`fusewire doctor`: checks a connection step by step, and tells what this machine has."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

import fusewire
from fusewire._connect import TLS_CA_VARIABLE
from fusewire._transport.grpc_transport import system_roots
from fusewire._transport.inspection import SYSTEM_ROOTS
from fusewire._transport.token import TOKEN_VARIABLE, UNIX_PREFIX
from fusewire_cli.text import duration, harmless
from fusewire_protos.address import Address, read_address
from fusewire_protos.errors import ConfigurationError, FusewireError, SessionLost, Unauthenticated, WaitTimeout

_STEP_S = 5.0
_MOST_CLOCK_DIFFERENCE_S = 5.0
_PACKAGES = ("numpy", "grpcio", "protobuf", "msgpack", "rich", "fastapi", "cupy-cuda13x", "cupy-cuda12x")


class Finding(NamedTuple):
    """The result of a check: what was found, and what to do if it has failed."""

    name: str
    is_ok: bool
    text: str
    remedy: str = ""


def run(parsed: argparse.Namespace) -> int:
    """Prints the findings; returns 1 if a check has failed. Raises ConfigurationError for a wrong address."""
    findings = [*connection_findings(parsed.target, parsed.http, parsed.tls_ca), *machine_findings()]
    if parsed.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        print("\n".join(_lines(findings)))
    return 0 if all(finding.is_ok for finding in findings) else 1


def connection_findings(target: str, http: str | None, tls_ca: str | None) -> Iterator[Finding]:
    """Yields a finding for each step of a connection, up to the first that fails. Each step takes at most 5 s."""
    trusted = tls_ca or os.environ.get(TLS_CA_VARIABLE)
    steps: list[Callable[[], Finding]] = []
    if not target.startswith(UNIX_PREFIX):
        address = _address(target)
        steps += [lambda: _name(address), lambda: _port(address)]
        if trusted:
            steps.append(lambda: _tls(address, trusted))
    steps.append(lambda: _session(target, tls_ca))
    if http:
        steps.append(lambda: _clock(_address(http), trusted))
    for step in steps:
        finding = step()
        yield finding
        if not finding.is_ok:
            return


def machine_findings() -> Iterator[Finding]:
    """Yields what this machine has. None of this can fail, because a client needs none of it."""
    versions = [f"{name} {found}" for name in _PACKAGES if (found := _version_of(name))]
    yield Finding("python", True, f"{platform.python_version()} on {platform.platform()}")
    yield Finding("packages", True, f"fusewire {fusewire.__version__}, {', '.join(versions)}")
    yield Finding("recorder", True, "Python")
    compiler = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    yield Finding("compiler", True, compiler or "none: a CPU server here runs op by op")
    yield Finding("gpu", True, _gpu())


def _lines(findings: list[Finding]) -> Iterator[str]:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        yield f"{'ok    ' if finding.is_ok else 'FAILED'}  {finding.name:<{width}}  {harmless(finding.text)}"
        if finding.remedy:
            yield f"{'':8}{'':<{width}}  → {finding.remedy}"


# ---- the steps ----


def _address(text: str) -> Address:
    try:
        return read_address(text, least_port=1)
    except ValueError as reason:
        raise ConfigurationError(f"{text!r}: {reason}") from None


def _name(address: Address) -> Finding:
    try:
        found = sorted({entry[4][0] for entry in socket.getaddrinfo(address.host, address.port)})
    except OSError as reason:
        return Finding("name", False, f"{address.host}: {reason.strerror}", "check the spelling, and the DNS server")
    return Finding("name", True, f"{address.host} is {', '.join(map(str, found))}")


def _port(address: Address) -> Finding:
    began_s = time.monotonic()
    try:
        socket.create_connection(tuple(address), timeout=_STEP_S).close()
    except TimeoutError:
        text = f"nothing answers at {address} within {_STEP_S:.0f} s"
        return Finding("port", False, text, "check the firewall between here and there, and the address")
    except OSError as reason:
        text = f"{address}: {reason.strerror}"
        return Finding("port", False, text, "does the server run, and does its listen.grpc let others connect?")
    return Finding("port", True, f"{address} answers in {duration(time.monotonic() - began_s)}")


def _tls(address: Address, trusted: str) -> Finding:
    try:
        context = ssl.create_default_context(cafile=str(system_roots() if trusted == SYSTEM_ROOTS else Path(trusted)))
        context.set_alpn_protocols(["h2"])
        with (
            socket.create_connection(tuple(address), timeout=_STEP_S) as plain,
            context.wrap_socket(plain, server_hostname=address.host) as secured,
        ):
            certificate = secured.getpeercert() or {}
    except ssl.SSLCertVerificationError as reason:
        remedy = f"{trusted} must hold the certificate that signed the server's, for the name {address.host}"
        return Finding("tls", False, reason.verify_message, remedy)
    except OSError as reason:  # ssl.SSLError is one
        return Finding("tls", False, str(reason), "does the server speak TLS? Without TLS leave out --tls-ca")
    names = ", ".join(str(value) for _, value in certificate.get("subjectAltName", ()))
    return Finding("tls", True, f"certificate for {names}, valid until {certificate.get('notAfter')}")


def _session(target: str, tls_ca: str | None) -> Finding:
    began_s = time.monotonic()
    token = f"set {TOKEN_VARIABLE} to a token of scope use; `fusewire token mint` makes one on the server"
    try:
        with fusewire.connect(target, tls_ca=tls_ca, timeout=_STEP_S) as session:
            text = f"opened in {duration(time.monotonic() - began_s)} on backend {session.backend}"
    except Unauthenticated as reason:
        return Finding("session", False, str(reason), token)
    except (SessionLost, WaitTimeout) as reason:
        remedy = "is this the gRPC port of a Fusewire server (7423), and does it want TLS (--tls-ca)?"
        return Finding("session", False, str(reason), remedy)
    except FusewireError as reason:
        return Finding("session", False, str(reason))
    return Finding("session", True, text)


def _clock(address: Address, trusted: str | None) -> Finding:
    scheme = "https" if trusted else "http"
    remedy = "is this the HTTP port of the server (7424)?"
    try:
        there = _date_of(f"{scheme}://{address}/livez")
    except (OSError, ValueError, TypeError) as reason:
        return Finding("inspection", False, f"{address}: {reason}", remedy)
    difference_s = abs((datetime.now(UTC) - there).total_seconds())
    text = f"the clocks differ by {difference_s:.0f} s"
    is_ok = difference_s <= _MOST_CLOCK_DIFFERENCE_S
    return Finding("clock", is_ok, text, "" if is_ok else "set the clocks: tokens and certificates have dates")


def _date_of(url: str) -> datetime:
    """Returns the time that the answer names. The certificate is not checked here: no data travel."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=_STEP_S) as answer:
            return parsedate_to_datetime(answer.headers["date"])
    except HTTPError as refused:
        with refused:
            return parsedate_to_datetime(refused.headers["date"])


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _gpu() -> str:
    found = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    models = [line.partition(":")[2].strip() for path in found for line in path.read_text().splitlines()[:1]]
    cupy = "with CuPy" if find_spec("cupy") else "without CuPy: pip install 'fusewire[server,cuda13]' to serve it"
    return f"{', '.join(models)}, {cupy}" if models else "none"
