"""Calls in copies of a process: all are made, errors are told, and the copies end with the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fusewire_kernels.compile.forked_calls import call_in_forks

_WITHIN_S = 30.0
_WAITING = """
import os, signal
from fusewire_kernels.compile.forked_calls import call_in_forks
def wait():
    os.write(1, b"waits\\n")
    signal.pause()
call_in_forks([wait, wait, wait])
"""


def raise_an_error() -> None:
    raise ValueError("no")


def test_each_call_but_the_first_is_made_in_a_process_of_its_own(tmp_path: Path) -> None:
    calls = [lambda number=number: (tmp_path / str(number)).write_text(str(os.getpid())) for number in range(3)]
    assert call_in_forks(calls) == [0, 0]
    processes = [int((tmp_path / str(number)).read_text()) for number in range(3)]
    assert processes[0] == os.getpid()
    assert len(set(processes)) == 3


def test_an_error_or_a_signal_is_the_status_of_its_copy_alone() -> None:
    kill = [lambda: os.kill(os.getpid(), signal.SIGKILL)]
    assert call_in_forks([bool, bool, raise_an_error, *kill]) == [0, 1, -signal.SIGKILL]


def test_an_error_of_the_first_call_is_raised_once_the_others_have_ended(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"):
        call_in_forks([raise_an_error, (tmp_path / "made").touch])
    assert (tmp_path / "made").exists()


def test_no_calls_are_no_copies() -> None:
    assert call_in_forks([]) == []


def test_copies_end_with_the_process_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", _WAITING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline() for _ in range(3)]
        process.kill()
        process.communicate(timeout=_WITHIN_S)  # returns once nobody holds the other end of the pipe
    assert printed == ["waits\n"] * 3
