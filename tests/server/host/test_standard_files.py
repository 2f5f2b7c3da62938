"""Closed standard files are opened again, so that no socket gets their numbers."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from tests.patience import HANGS_S

_LIST = 'import os; print([os.path.exists(f"/proc/self/fd/{number}") for number in range(3)])'
_PROGRAM = f"""
import os, subprocess, sys
from fusewire_server.host.standard_files import open_missing
open_missing()
sys.stdin.fileno(), sys.stdout.write(""), sys.stderr.write("")
listed = subprocess.run([sys.executable, "-c", {_LIST!r}], stdout=subprocess.PIPE, text=True, check=True).stdout
sys.exit(listed != "[True, True, True]\\n" or os.path.exists("/proc/self/fd/3"))
"""


@pytest.mark.parametrize("closed", ["", "0<&-", "1>&-", "2>&-", "0<&- 1>&-", "0<&- 1>&- 2>&-"])
def test_closed_ones_are_opened_for_the_process_and_those_that_it_starts(closed: str) -> None:
    command = f"{sys.executable} -c {shlex.quote(_PROGRAM)} {closed}"
    assert subprocess.run(["/bin/sh", "-c", command], timeout=HANGS_S, check=False).returncode == 0
