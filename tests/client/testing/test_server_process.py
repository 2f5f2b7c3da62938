"""Servers for tests end with whoever started them."""

from __future__ import annotations

import os
import select
import subprocess
import sys

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
