"""The side of a child process: reports that are written in a thread of their own."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from fusewire_server.processes.child import Reporter
from tests.patience import HANGS_S


def test_reports_are_written_in_their_order_and_a_reader_that_is_late_delays_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as read, os.fdopen(write_end, "w") as write:
        monkeypatch.setattr(sys, "stdout", write)
        reporter = Reporter()
        long = b"x" * (1 << 20) + b"\n"  # more than a pipe holds
        reporter.tell(lambda: long)
        reporter.tell(lambda: b"last\n")
        assert reporter.is_behind
        assert read.readline() == long
        assert read.readline() == b"last\n"
        reporter.end(HANGS_S)
        assert not reporter.is_behind


def test_a_server_that_has_ended_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as write:
        monkeypatch.setattr(sys, "stdout", write)
        reporter, made = Reporter(), threading.Event()

        def line() -> bytes:
            made.set()
            return b"lost\n"

        reporter.tell(line)
        assert made.wait(HANGS_S)
        reporter.end(HANGS_S)
        assert not reporter._thread.is_alive()
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), write_end)  # takes what is left in the buffer
