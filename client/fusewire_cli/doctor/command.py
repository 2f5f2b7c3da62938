"""`fusewire doctor`: probes a connection step by step, and prints what it finds."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from fusewire._connect import TARGET_VARIABLE, TLS_CA_VARIABLE
from fusewire._transport.token import UNIX_PREFIX, token_of
from fusewire_cli.commands import GRPC, HTTP
from fusewire_cli.doctor.connection_findings import (
    inspection_findings,
    name_finding,
    port_finding,
    session_findings,
    tls_finding,
)
from fusewire_cli.doctor.finding import Finding, State
from fusewire_cli.doctor.machine_findings import machine_findings
from fusewire_cli.doctor.probes import addresses_of, ask_inspection, connecting_s, handshake, open_session, outcome_of
from fusewire_cli.text import harmless
from fusewire_protos.address import Address, read_address
from fusewire_protos.errors import ConfigurationError


class Connection(NamedTuple):
    """The connection to look at. `address` is None if the target is a Unix socket."""

    target: str
    address: Address | None
    inspection: Address
    is_inspection_named: bool
    trusted: str  # a file of certificates, "system", or "" for a connection without TLS
    token: str


def run(parsed: argparse.Namespace) -> int:
    """Prints the findings as they come; returns 1 if a step has failed. Raises ConfigurationError."""
    findings = _printed(_findings(connection_of(parsed)), is_json=parsed.json)
    return 1 if any(finding.state is State.FAILED for finding in findings) else 0


def connection_of(parsed: argparse.Namespace) -> Connection:
    """Returns the connection that the user has typed or set. Raises ConfigurationError for a wrong address or token."""
    target: str = parsed.target or os.environ.get(TARGET_VARIABLE) or GRPC
    address = None if target.startswith(UNIX_PREFIX) else _address(target)
    beside = _address(HTTP) if address is None else address._replace(port=_address(HTTP).port)
    return Connection(
        target=target,
        address=address,
        inspection=_address(parsed.http) if parsed.http else beside,
        is_inspection_named=parsed.http is not None,
        trusted=parsed.tls_ca or os.environ.get(TLS_CA_VARIABLE) or "",
        token=token_of(None),
    )


def connection_findings(connection: Connection) -> Iterator[Finding]:
    """Yields a finding for each step of a connection. After a step that fails, no further step is tried."""
    for finding in _findings_of_reaching(connection):
        yield finding
        if finding.state is State.FAILED:
            return
    inspection = outcome_of(lambda: ask_inspection(connection.inspection, connection.trusted, connection.token))
    opened = outcome_of(lambda: open_session(connection.target, connection.trusted))
    yield from session_findings(opened, sends_token=bool(connection.token), inspection=inspection)
    yield from inspection_findings(
        connection.inspection, inspection, datetime.now(UTC), is_named=connection.is_inspection_named
    )


def _findings_of_reaching(connection: Connection) -> Iterator[Finding]:
    address = connection.address
    if address is None:
        yield port_finding(connection.target, outcome_of(lambda: connecting_s(connection.target)))
        return
    yield name_finding(address.host, outcome_of(lambda: addresses_of(*address)))
    yield port_finding(str(address), outcome_of(lambda: connecting_s(address)))
    found = outcome_of(lambda: handshake(address, connection.trusted))
    yield tls_finding(address, connection.trusted, found, datetime.now(UTC))


def _findings(connection: Connection) -> Iterator[Finding]:
    yield from connection_findings(connection)
    yield from machine_findings()


def _printed(findings: Iterable[Finding], *, is_json: bool) -> list[Finding]:
    """Prints findings: as lines as they come, or as one JSON list."""
    if is_json:
        listed = list(findings)
        print(json.dumps([finding._asdict() | {"state": finding.state.value} for finding in listed], indent=2))
        return listed
    listed = []
    for finding in findings:
        listed.append(finding)
        print(_lines(finding), flush=True)
    return listed


def _lines(finding: Finding) -> str:
    state = "FAILED" if finding.state is State.FAILED else finding.state.value
    line = f"{state:<7}  {finding.name:<10}  {harmless(finding.text)}"
    return f"{line}\n{'':21}→ {harmless(finding.remedy)}" if finding.remedy else line


def _address(text: str) -> Address:
    try:
        return read_address(text, least_port=1)
    except ValueError as reason:
        raise ConfigurationError(f"{text!r}: {reason}, or unix:PATH") from None
