"""A client process tells what keeps it from training, and gives up when nobody tells it to start."""

import io

import pytest

from fusewire.examples.worker import main
from fusewire.testing import serve_subprocess

ARGUMENTS = ["--learning-rate", "0.1", "--epochs", "1"]


def test_a_server_that_cannot_be_reached_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--target", "127.0.0.1:1", *ARGUMENTS]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("client with learning rate 0.1: 127.0.0.1:1")
    assert len(printed.err.splitlines()) == 1


def test_the_end_of_its_input_ends_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with serve_subprocess("cpu") as server:
        assert main(["--target", server.grpc, *ARGUMENTS]) == 1
    assert capsys.readouterr().out == '{"event": "ready"}\n'
