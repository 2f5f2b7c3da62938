"""Giving way to other processes."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import sys

import pytest

from fusewire_server.courtesy import TURN_NS

_SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}
_DEADLINE_S = 60.0


def told(code: str) -> int:
    """What a process that gives way prints; this one must keep its own priority."""
    program = f"from fusewire_server.courtesy import give_way\ngive_way(10)\n{code}"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_DEADLINE_S)
    assert not done.stderr
    return int(done.stdout)


def test_a_process_gives_way_by_its_priority() -> None:
    assert told("import os; print(os.nice(0))") == min(os.nice(0) + 10, 19)


def turn_ns() -> int:
    """How long turns of this process are; 0 if the system does not tell."""
    number = _SCHED_GETATTR.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return 0
    attributes = ctypes.create_string_buffer(48)
    ctypes.CDLL(None).syscall(number, 0, attributes, 48, 0)
    return int(struct.unpack("=IIQiIQQQ", attributes.raw)[5])


@pytest.mark.skipif(turn_ns() == 0, reason="the system does not tell how long turns are")
def test_it_takes_its_turns_seldom_and_long() -> None:
    assert told("from tests.server.test_courtesy import turn_ns; print(turn_ns())") == TURN_NS
