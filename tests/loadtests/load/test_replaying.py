"""Replaying a recording as load."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fusewire as fw
from fusewire._recordings.records import Answer, Header, Recording, RecordWriter
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


def _replay(server: ServerProcess, path: Path) -> tuple[int, dict[str, object]]:
    told = path.with_suffix(".json")
    given = ["--sessions", "3", "--processes", "2", "--speed", "4", "--target", server.grpc, "--json", str(told)]
    return main(["replay", str(path), *given]), json.loads(told.read_text(encoding="utf-8"))


def test_every_session_replays_and_every_value_is_compared(server: ServerProcess, path: Path) -> None:
    status, document = _replay(server, path)
    assert (status, document["problems"]) == (0, [])
    assert (document["steps"], document["verified"], document["verified_values"]) == (15, True, 15)
    assert (document["seconds"], document["harness_share"]) == (None, None)


def test_a_value_that_differs_from_the_recorded_one_fails(server: ServerProcess, path: Path) -> None:
    with Recording(path) as recording:
        records = list(recording.records())
    writer = RecordWriter(path, Header("a test", keeps_values=True))
    for record in records:
        writer.write(record._replace(value=b"") if isinstance(record, Answer) and record.fetch == 2 else record)
    writer.end(0)
    status, document = _replay(server, path)
    assert (status, document["verified"]) == (1, False)
    assert len(document["problems"]) == 3  # type: ignore[arg-type]  # a list


def test_a_recording_that_was_cut_short_is_one_clear_line(
    server: ServerProcess, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(path.read_bytes()[:-5])
    assert main(["replay", str(path), "--target", server.grpc]) == 1
    assert capfd.readouterr().err.splitlines()[-1].endswith("steps.fwr: it was cut short")
