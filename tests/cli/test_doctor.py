"""What the doctor says of connections that fail, and what to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire_cli import doctor
from fusewire_cli.doctor import connection_findings, machine_findings
from fusewire_cli.main import main


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a service that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_a_name_that_does_not_resolve() -> None:
    (finding,) = connection_findings("nowhere.invalid:7423", None, None)
    assert (finding.name, finding.is_ok) == ("name", False)
    assert "spelling" in finding.remedy


def test_a_port_that_nobody_listens_on() -> None:
    name, port = connection_findings("127.0.0.1:1", None, None)
    assert name.is_ok
    assert (port.name, port.is_ok) == ("port", False)
    assert "refused" in port.text


def test_a_service_that_is_no_server(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_STEP_S", 0.3)
    *before, session = connection_findings(silent, None, None)
    assert all(finding.is_ok for finding in before)
    assert (session.name, session.is_ok) == ("session", False)
    assert "7423" in session.remedy


def test_a_service_without_tls(silent: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "_STEP_S", 0.3)
    *before, tls = connection_findings(silent, None, "system")
    assert all(finding.is_ok for finding in before)
    assert (tls.name, tls.is_ok) == ("tls", False)
    assert "TLS" in tls.remedy


def test_an_address_that_is_none_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "nowhere"]) == 2
    assert "expected HOST:PORT" in capsys.readouterr().err


def test_a_failed_check_is_status_1_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "127.0.0.1:1"]) == 1
    printed = capsys.readouterr().out
    assert "FAILED  port" in printed
    assert "→ does the server run" in printed


def test_the_machine_is_described() -> None:
    names = [finding.name for finding in machine_findings()]
    assert names == ["python", "packages", "recorder", "compiler", "gpu"]
