"""Replaying a recording as load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._replay.records import Answer, Header, Recording, RecordWriter
from fusewire.testing import ServerProcess, serve_subprocess
from loadtests.command_line import main

pytestmark = pytest.mark.slow


@pytest.fixture(name="server", scope="module")
def _server():  # type: ignore[no-untyped-def]  # a generator
    with serve_subprocess("cpu") as server:
        yield server


@pytest.fixture(name="path")
def _path(server: ServerProcess, tmp_path: Path) -> Path:
    path = tmp_path / "steps.fwr"
    with fw.connect(server.grpc, record=path, record_values=True) as session:
        x = session.array(np.arange(8.0))
        for step in range(5):
            x = fw.tanh(x + step)
            x.numpy()
    return path


def _replay(server: ServerProcess, path: Path, *more: str) -> tuple[int, dict[str, Any]]:
    result = path.with_suffix(".json")
    given = ["--sessions", "3", "--processes", "2", "--speed", "inf", "--seconds", "0.6", "--target", server.grpc]
    given += ["--json", str(result)]
    return main(["replay", str(path), *given, *more]), json.loads(result.read_text(encoding="utf-8"))


def test_every_session_replays_and_every_value_is_compared(server: ServerProcess, path: Path) -> None:
    status, document = _replay(server, path)
    assert (status, document["problems"]) == (0, [])
    assert document["verified"] is True
    assert document["verified_values"] > 15  # each session has repeated the recording
    assert document["warm_up_s"] > 0


def test_a_value_that_differs_from_the_recorded_one_fails(server: ServerProcess, path: Path) -> None:
    with Recording(path) as recording:
        records = list(recording.records())
    writer = RecordWriter(path, Header("a test", keeps_values=True))
    for record in records:
        writer.write(record._replace(value=b"") if isinstance(record, Answer) and record.fetch == 2 else record)
    writer.end(0)
    status, document = _replay(server, path)
    assert (status, document["verified"]) == (1, False)
    problems = document["problems"]
    assert {problem.partition(",")[0] for problem in problems} == {"session 0", "session 1", "session 2"}
    assert all("fetch 2 was 0 bytes and is 64" in problem for problem in problems)


def test_replays_begin_at_a_rate_of_steps(server: ServerProcess, path: Path) -> None:
    _, document = _replay(server, path, "--rate", "60")
    assert document["rate_per_s"] == 60
    assert document["steps_per_s"] < 90  # as fast as it can it does many more
    assert document["lag_mean_s"] >= 0


def test_a_recording_without_an_answer_has_nothing_to_be_timed(
    server: ServerProcess, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with fw.connect(server.grpc, record=tmp_path / "r") as session:
        session.array(np.arange(8.0))
    assert main(["replay", str(tmp_path / "r"), "--target", server.grpc]) == 1
    assert "holds no answer of a fetch" in capfd.readouterr().err


def test_a_recording_that_was_cut_short_is_one_clear_line(
    server: ServerProcess, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(path.read_bytes()[:-5])
    assert main(["replay", str(path), "--target", server.grpc]) == 1
    assert capfd.readouterr().err.splitlines()[-1].endswith("steps.fwr: it was cut short")
