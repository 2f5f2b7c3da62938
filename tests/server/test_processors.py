"""On which processors processes may run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fusewire_server.processors import let_run

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no such choice")

_OWN_CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")

_WITH_A_CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"])
print(child.pid, flush=True)
child.wait()
"""


@contextmanager
def family() -> Iterator[tuple[int, int]]:
    """A process, and one that it has started."""
    command = [sys.executable, "-c", _WITH_A_CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.stdin.close()


def test_a_process_and_what_it_has_started_keep_to_one_processor_of_ours_until_they_may_run_anywhere() -> None:
    ours = os.sched_getaffinity(0)
    with family() as (leader, child):
        processes = (leader, child) if _OWN_CHILDREN.exists() else (leader,)  # where the system does not tell
        let_run(leader, anywhere=False)
        (one,) = {frozenset(os.sched_getaffinity(process)) for process in processes}
        assert len(one) == 1
        assert one <= ours
        let_run(leader, anywhere=True)
        assert all(os.sched_getaffinity(process) == ours for process in processes)
    assert os.sched_getaffinity(0) == ours


def test_a_process_that_has_ended_is_left_alone() -> None:
    with family() as (process, _):
        pass
    let_run(process, anywhere=False)
