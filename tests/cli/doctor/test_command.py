"""The command: which steps it tries, where it stops, what it prints, and its status."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from fusewire._connect import TARGET_VARIABLE, TLS_CA_VARIABLE
from fusewire._transport.token import TOKEN_VARIABLE
from fusewire_cli.doctor.command import connection_findings, connection_of
from fusewire_cli.main import main
from fusewire_protos.address import Address


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (TARGET_VARIABLE, TLS_CA_VARIABLE, TOKEN_VARIABLE):
        monkeypatch.delenv(variable, raising=False)


def typed(target: str | None = None, http: str | None = None, tls_ca: str | None = None) -> argparse.Namespace:
    return argparse.Namespace(target=target, http=http, tls_ca=tls_ca)


def test_what_is_not_typed_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connection_of(typed()).address == Address("127.0.0.1", 7423)
    monkeypatch.setenv(TARGET_VARIABLE, "gpu:1")
    monkeypatch.setenv(TLS_CA_VARIABLE, "ca.pem")
    connection = connection_of(typed())
    assert (connection.address, connection.trusted) == (Address("gpu", 1), "ca.pem")
    assert connection_of(typed("other:2", tls_ca="system"))[:2] == ("other:2", Address("other", 2))


def test_inspection_is_looked_for_on_the_same_host() -> None:
    connection = connection_of(typed("gpu:1"))
    assert (connection.inspection, connection.is_inspection_named) == (Address("gpu", 7424), False)
    connection = connection_of(typed("gpu:1", http="other:2"))
    assert (connection.inspection, connection.is_inspection_named) == (Address("other", 2), True)
    assert connection_of(typed("unix:/s")).inspection == Address("127.0.0.1", 7424)


@pytest.mark.parametrize(
    ("target", "steps"),
    [("nowhere.invalid:7423", ["name"]), ("127.0.0.1:1", ["name", "port"]), ("unix:/absent", ["port"])],
)
def test_no_step_is_tried_after_one_that_failed(target: str, steps: list[str]) -> None:
    assert [finding.name for finding in connection_findings(connection_of(typed(target)))] == steps


@pytest.mark.parametrize("arguments", [["nowhere"], ["127.0.0.1:1", "--http", "nowhere"]])
def test_an_address_that_is_none_is_a_usage_error(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["doctor", *arguments]) == 2
    assert "expected HOST:PORT" in capsys.readouterr().err


def test_a_failed_step_is_status_1_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "127.0.0.1:1"]) == 1
    printed = capsys.readouterr().out
    assert "FAILED   port" in printed
    assert "→ does the server run" in printed
    assert "ok       python" in printed


def test_json_has_the_same_findings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", f"unix:{tmp_path / 'absent'}", "--json"]) == 1
    port, python, *_ = json.loads(capsys.readouterr().out)
    assert (port["name"], port["state"], python["name"], python["state"]) == ("port", "failed", "python", "ok")
    assert set(port) == {"name", "state", "text", "remedy"}
