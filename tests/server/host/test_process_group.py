"""A killed worker takes with it what it has started, and its temporary folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fusewire_kernels.compile.processes import usage_of_session
from tests.patience import HANGS_S

DEADLINE_S = HANGS_S

WORKER = """
import os, subprocess, sys
from pathlib import Path
from fusewire_kernels.compile.forked_calls import end_with_parent
from fusewire_server.host.process_group import guard_group
end_with_parent()
guard_group(Path(sys.argv[1]))
options = {"process_group": 0} if sys.argv[2:] == ["in a group of its own"] else {}
started = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **options)
print(started.pid, flush=True)
started.wait()
"""

SERVER = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]], start_new_session=True).wait()
"""


def wait_until_gone(started: int, temporary: Path) -> None:
    ends_at_s = time.monotonic() + DEADLINE_S
    while psutil.pid_exists(started) or temporary.exists():
        assert time.monotonic() < ends_at_s
        time.sleep(0.01)


def first_line(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


@pytest.mark.parametrize("options", [(), ("in a group of its own",)], ids=["in its group", "in another group"])
def test_what_a_killed_worker_has_started_ends_and_its_streams_close(options: tuple[str, ...], tmp_path: Path) -> None:
    if options and usage_of_session(os.getsid(0)) is None:
        pytest.skip("the system does not tell which processes a session has")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = (sys.executable, "-c", WORKER, str(temporary), *options)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as worker:
        started = first_line(worker)
        os.kill(worker.pid, signal.SIGKILL)
        worker.communicate(timeout=DEADLINE_S)
    wait_until_gone(started, temporary)


def test_a_worker_ends_with_its_killed_server(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = (sys.executable, "-c", SERVER, WORKER, str(temporary))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        started = first_line(server)
        server.kill()
        server.communicate(timeout=DEADLINE_S)
    wait_until_gone(started, temporary)
