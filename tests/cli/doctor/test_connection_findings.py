"""What the doctor says of each outcome of a probe, and what it tells the user to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fusewire_cli.doctor.connection_findings import (
    inspection_findings,
    name_finding,
    port_finding,
    session_findings,
    tls_finding,
)
from fusewire_cli.doctor.facts import Certificate, Handshake, InspectionAnswer, OpenedSession
from fusewire_cli.doctor.finding import State
from fusewire_protos.address import Address
from fusewire_protos.errors import (
    ConfigurationError,
    ProtocolError,
    QuotaExceeded,
    SessionLost,
    Unauthenticated,
    WaitTimeout,
)

OK, FAILED, UNKNOWN = State.OK, State.FAILED, State.UNKNOWN
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOST = Address("gpu", 7423)
CERTIFICATE = Certificate(("gpu.example",), NOW - timedelta(days=9), NOW + timedelta(days=90), "our CA")
OPENED = OpenedSession(0.01, "fusewire 1.2", "cuda")


@pytest.mark.parametrize(
    ("outcome", "state", "text"),
    [
        (["10.0.0.1", "::1"], OK, "gpu is 10.0.0.1, ::1"),
        (OSError(-2, "Name or service not known"), FAILED, "gpu: Name or service not known"),
        (TimeoutError("no answer"), FAILED, "the look-up of gpu got no answer"),
    ],
)
def test_a_name(outcome: list[str] | Exception, state: State, text: str) -> None:
    finding = name_finding("gpu", outcome)
    assert finding[:3] == ("name", state, text)
    assert bool(finding.remedy) == (state is FAILED)


@pytest.mark.parametrize(
    ("outcome", "state", "text", "remedy"),
    [
        (0.01, OK, "gpu:7423 answers in 10.0 ms", ""),
        (ConnectionRefusedError(111, "Connection refused"), FAILED, "gpu:7423: Connection refused", "does the server"),
        (TimeoutError("timed out"), FAILED, "nothing answers at gpu:7423", "firewall"),
    ],
)
def test_a_port(outcome: float | Exception, state: State, text: str, remedy: str) -> None:
    finding = port_finding("gpu:7423", outcome)
    assert finding[:3] == ("port", state, text)
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("trusted", "outcome", "state", "text", "remedy"),
    [
        ("", Handshake(False, False), OK, "not encrypted", ""),
        ("", Handshake(True, True, CERTIFICATE), FAILED, "was not told to: certificate for gpu.example", "--tls-ca"),
        ("", TimeoutError("no answer within 5 s"), UNKNOWN, "no answer within 5 s", "7423"),
        ("ca.pem", TimeoutError("no answer within 5 s"), FAILED, "no answer within 5 s", "7423"),
        ("ca.pem", Handshake(False, False), FAILED, "does not speak TLS", "leave out --tls-ca"),
        ("ca.pem", Handshake(True, False, CERTIFICATE), FAILED, "no HTTP/2", "7423"),
        ("ca.pem", ConfigurationError("ca.pem: no such file"), FAILED, "no such file", "--tls-ca"),
        ("ca.pem", Handshake(True, False, None, "self-signed", 18), FAILED, "cannot be read", "in ca.pem must hold"),
        (
            "system",
            Handshake(True, False, CERTIFICATE, "no issuer", 20),
            FAILED,
            "no issuer",
            "of the system must hold",
        ),
        ("ca.pem", Handshake(True, False, CERTIFICATE, "expired", 10), FAILED, "to 2030-04-01", "2030-01-01 12:00 UTC"),
        ("ca.pem", Handshake(True, False, CERTIFICATE, "too early", 9), FAILED, "2029-12-23 to", "clock"),
        ("ca.pem", Handshake(True, False, CERTIFICATE, "other name", 62), FAILED, "gpu.example", "one for gpu"),
        ("ca.pem", Handshake(True, False, CERTIFICATE, "other IP", 64), FAILED, "gpu.example", "one for gpu"),
    ],
)
def test_a_handshake(trusted: str, outcome: Handshake | Exception, state: State, text: str, remedy: str) -> None:
    finding = tls_finding(HOST, trusted, outcome, NOW)
    assert (finding.name, finding.state) == ("tls", state)
    assert text in finding.text
    assert remedy in finding.remedy


def test_a_trusted_certificate_is_described_with_what_trusts_it() -> None:
    finding = tls_finding(HOST, "ca.pem", Handshake(True, True, CERTIFICATE), NOW)
    assert finding.text == (
        "certificate for gpu.example, valid 2029-12-23 to 2030-04-01, signed by our CA; "
        "trusted by the certificates in ca.pem"
    )


@pytest.mark.parametrize(
    ("error", "name", "remedy"),
    [
        (Unauthenticated("no token came"), "token", "fusewire token mint"),
        (ConfigurationError("the token would travel unencrypted"), "token", ""),
        (ProtocolError("the server speaks version 2"), "version", "pip install"),
        (SessionLost("unavailable"), "session", "7423"),
        (WaitTimeout("no answer"), "session", "7423"),
        (QuotaExceeded("too many sessions"), "session", "7423"),
    ],
)
def test_a_session_that_does_not_open_is_one_finding_by_its_cause(error: Exception, name: str, remedy: str) -> None:
    (finding,) = session_findings(error, sends_token=True, inspection=OSError())
    assert (finding.name, finding.state, finding.text) == (name, FAILED, str(error))
    assert remedy in finding.remedy


def test_a_session_that_opens_tells_token_version_and_backend() -> None:
    findings = session_findings(OPENED, sends_token=False, inspection=OSError())
    assert [(finding.name, finding.state) for finding in findings] == [("token", OK), ("version", OK), ("session", OK)]
    assert [finding.text for finding in findings] == [
        "the server asks for none",
        "protocol 1, of fusewire 1.2",
        "opened in 10.0 ms on backend cuda",
    ]


@pytest.mark.parametrize(
    ("inspection", "text"),
    [
        (InspectionAnswer(200, NOW), "accepted: it may open sessions and read inspection"),
        (InspectionAnswer(403, NOW), "accepted: it may open sessions, and not read inspection: scope use"),
        (OSError("refused"), "accepted: it may open sessions"),
    ],
)
def test_inspection_tells_the_scope_of_the_token(inspection: InspectionAnswer | Exception, text: str) -> None:
    token, *_ = session_findings(OPENED, sends_token=True, inspection=inspection)
    assert token.text == text


@pytest.mark.parametrize(("is_named", "state"), [(True, FAILED), (False, UNKNOWN)])
@pytest.mark.parametrize(
    "answer", [OSError(111, "refused"), InspectionAnswer(404, NOW), InspectionAnswer(200, None)], ids=str
)
def test_inspection_that_does_not_answer_is_a_fault_if_it_was_named(
    answer: InspectionAnswer | Exception, is_named: bool, state: State
) -> None:
    (finding,) = inspection_findings(HOST, answer, NOW, is_named=is_named)
    assert (finding.name, finding.state) == ("inspection", state)
    assert "clocks are not compared" in finding.text
    assert "--http" in finding.remedy


@pytest.mark.parametrize(
    ("status", "is_named", "state", "text", "remedy"),
    [
        (421, True, FAILED, "only to requests for localhost", "name it by --http localhost:7423"),
        (421, False, UNKNOWN, "only to requests for localhost", "name it by --http localhost:7423"),
        (503, True, UNKNOWN, "the server is busy", "try again later"),
    ],
)
def test_a_refusal_of_inspection_says_what_to_do(
    status: int, is_named: bool, state: State, text: str, remedy: str
) -> None:
    inspection, clock = inspection_findings(HOST, InspectionAnswer(status, NOW), NOW, is_named=is_named)
    assert (inspection.name, inspection.state, inspection.remedy) == ("inspection", state, remedy)
    assert text in inspection.text
    assert clock.state is OK


@pytest.mark.parametrize("status", [200, 401, 403])
@pytest.mark.parametrize(
    ("ahead_s", "state", "text"),
    [(4, OK, "less than 5 s"), (-4, OK, "less than 5 s"), (90, FAILED, "1.5 min ahead"), (-90, FAILED, "behind")],
)
def test_the_clocks_are_compared(status: int, ahead_s: float, state: State, text: str) -> None:
    answer = InspectionAnswer(status, NOW + timedelta(seconds=ahead_s))
    inspection, clock = inspection_findings(HOST, answer, NOW, is_named=False)
    assert inspection.state is OK
    assert ("asks for a token" in inspection.text) == (status != 200)
    assert (clock.name, clock.state) == ("clock", state)
    assert text in clock.text
