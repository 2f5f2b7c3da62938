"""The commands on a real server: what they print about a session that works, and how they end it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import ServerProcess, serve_subprocess
from fusewire_cli.main import main


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serve_subprocess("cpu") as running:
        yield running


@pytest.fixture
def session(server: ServerProcess) -> Iterator[fw.Session]:
    with fw.connect(server.grpc) as session:
        x = session.array(np.ones((8, 8), np.float32))
        for _ in range(50):
            x = fw.tanh(x @ x)
        x.numpy()
        yield session


def _use_until_it_ends(session: fw.Session) -> None:
    while True:
        session.array([1.0]).numpy(timeout=10)


def printed(capsys: pytest.CaptureFixture[str], *typed: str) -> str:
    assert main(list(typed)) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_a_session_is_listed_shown_and_ended(
    server: ServerProcess, session: fw.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--http", server.http)
    assert session.id in printed(capsys, "sessions", "ls", *at)
    shown = printed(capsys, "sessions", "show", session.id, *at)
    assert "8×8" in shown
    answer = json.loads(printed(capsys, "sessions", "show", session.id, "--json", *at))
    assert answer["session"]["session"] == session.id
    assert {array["dtype"] for array in answer["arrays"]} == {"float32"}
    assert "public" in printed(capsys, "tenants", *at)
    printed(capsys, "sessions", "kill", session.id, *at)
    with pytest.raises(fw.SessionClosed, match="operator"):
        _use_until_it_ends(session)


@pytest.mark.slow
def test_programs_are_listed_and_shown_by_the_first_digits(
    server: ServerProcess, session: fw.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--http", server.http)
    listed = json.loads(printed(capsys, "programs", "ls", "--json", *at))
    digest = listed[0]["digest"]
    assert digest[:12] in printed(capsys, "programs", "ls", *at)
    assert digest in printed(capsys, "programs", "show", digest[:20], *at)
    assert json.loads(printed(capsys, "programs", "show", digest, "--json", *at))["program"]["digest"] == digest
    assert main(["programs", "show", "zz", *at]) == 2
    assert "0 programs" in capsys.readouterr().err


@pytest.mark.slow
def test_top_shows_the_sessions(server: ServerProcess, session: fw.Session, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--http", server.http, "--every", "0.05", "--once")
    assert session.id in printed(capsys, "top", *at)
    answer = json.loads(printed(capsys, "top", "--json", *at))
    assert session.id in [each["session"] for each in answer["sessions"]]


@pytest.mark.slow
def test_the_doctor_finds_nothing_wrong(server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(printed(capsys, "doctor", server.grpc, "--http", server.http, "--json"))
    steps = ["name", "port", "tls", "token", "version", "session", "inspection", "clock"]
    assert [finding["name"] for finding in answer][:8] == steps
    assert {finding["state"] for finding in answer} == {"ok"}


@pytest.mark.slow
def test_what_a_program_sends_is_recorded_and_replayed(
    server: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, numpy as np, fusewire as fw\n"
        "for _ in range(2):\n"
        "    with fw.connect(sys.argv[1]) as session:\n"
        "        print(float(fw.sum(session.array(np.arange(9.0)) * 2)))\n"
    )
    recording = tmp_path / "recording"
    run = ["record", "--values", str(recording), "--", sys.executable, str(program), server.grpc]
    assert main(run) == 0
    assert recording.exists()
    assert Path(f"{recording}.2").exists()
    answer = json.loads(
        printed(capsys, "replay", str(recording), server.grpc, "--sessions", "2", "--speed", "inf", "--json")
    )
    assert (answer["sessions"], answer["compared"], answer["differences"]) == (2, 2, [])
