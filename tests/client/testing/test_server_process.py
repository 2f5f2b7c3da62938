"""Servers for tests end with whoever started them."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from fusewire.testing import server_process

PROGRAM = """
import fusewire.testing, sys
with fusewire.testing.serve_subprocess("cpu") as server:
    print(server.pid, flush=True)
    sys.stdin.read()
"""


def test_a_server_does_not_outlive_a_parent_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        server = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    ended, _, _ = select.select([server], [], [], 20)
    os.close(server)
    assert ended


def test_an_interrupted_start_leaves_no_thread_behind() -> None:
    def interrupt() -> str:
        raise KeyboardInterrupt

    before = set(threading.enumerate())
    process: Any = SimpleNamespace(stdout=SimpleNamespace(readline=interrupt), kill=lambda: None)
    with pytest.raises(KeyboardInterrupt):
        server_process._ready(process)
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()
