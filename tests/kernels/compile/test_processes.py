"""What the processes of a group and of a session have used, as the system tells it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fusewire_kernels.compile.processes import processes, usage_of_group, usage_of_session
from fusewire_kernels.compile.watch import Usage

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's /proc")

# Uses processor time, lets a child use some, tells when, and stands still.
WORK = """
import subprocess, sys, time
def use(seconds):
    while time.process_time() < seconds:
        pass
if len(sys.argv) > 1:
    use(0.3)
    sys.exit()
use(0.2)
subprocess.run([sys.executable, "-c", open("/proc/self/cmdline").read().split("\\0")[2], "child"])
print("worked", flush=True)
sys.stdin.read()
"""
SPIN = "print('worked', flush=True)\nwhile True: pass"


@contextmanager
def running(code: str, *, leads_session: bool = False) -> Iterator[int]:
    """A process that leads a group, after it has told that it has worked."""
    pipe = subprocess.PIPE
    command, group = [sys.executable, "-c", code], None if leads_session else 0
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, start_new_session=leads_session, process_group=group
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"worked\n"
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("usage_of", "leads_session"), [(usage_of_group, False), (usage_of_session, True)], ids=["group", "session"]
)
def test_the_time_of_children_that_have_ended_counts(
    usage_of: Callable[[int], Usage | None], leads_session: bool
) -> None:
    with running(WORK, leads_session=leads_session) as number:
        usage = usage_of(number)
        assert usage is not None
        assert usage.processor_s >= 0.45  # the system rounds each down


def test_a_process_that_computes_is_runnable_or_gets_on() -> None:
    with running(SPIN) as number:
        first = usage_of_group(number)
        assert first is not None
        while (usage := usage_of_group(number)) == first:
            assert usage is not None
        assert usage is not None
        assert usage.is_runnable


def test_this_process_is_among_those_of_the_machine() -> None:
    (own,) = [process for process in processes() if process.number == os.getpid()]
    assert (own.group, own.session) == (os.getpgrp(), os.getsid(0))
