"""Closed standard files are opened again, so that no socket gets their numbers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.patience import HANGS_S

_PROGRAM = """
import os, sys
from fusewire_server.host.standard_files import open_missing
before = len(os.listdir("/proc/self/fd"))
for number in map(int, sys.argv[1:]):
    os.close(number)
open_missing()
for number in map(int, sys.argv[1:]):
    assert os.readlink(f"/proc/self/fd/{number}") == os.devnull
assert len(os.listdir("/proc/self/fd")) == before
"""


@pytest.mark.parametrize("closed", [(), ("0",), ("0", "1"), ("1",), ("0", "1", "2")])
def test_the_closed_ones_are_opened_and_no_others(closed: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", _PROGRAM, *closed]
    assert subprocess.run(command, timeout=HANGS_S, check=False).returncode == 0
