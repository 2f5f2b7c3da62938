"""What the process uses, as the system tells it."""

from __future__ import annotations

import os
import resource
import threading
from pathlib import Path

import pytest

from fusewire_server.host import process_usage as _process_usage
from fusewire_server.host.process_usage import Process, process_usage


def test_an_open_file_and_a_thread_are_counted(tmp_path: Path) -> None:
    before = process_usage()
    assert before.resident_bytes is not None
    assert before.resident_bytes > 1 << 20
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait, args=(60,))
    thread.start()
    with (tmp_path / "file").open("w"):
        during = process_usage()
    ends.set()
    thread.join()
    assert before.open_files is not None
    assert before.threads is not None
    assert (during.open_files, during.threads) == (before.open_files + 1, before.threads + 1)


def test_if_no_file_can_be_opened_the_limit_is_the_number_of_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        usage = process_usage()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert usage == Process(open_files=lowest)


def test_a_system_without_proc_tells_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_process_usage, "_SELF", tmp_path / "nothing")
    assert process_usage() == Process()
