"""Processes that use all the time of the processors that they can get, and how much time nobody uses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil

_BUSY_PROCESSES = 16
_SPIN = "while True: pass"


@contextmanager
def busy_processes() -> Iterator[None]:
    """Many processes of this one's priority, which is the server's too."""
    with ExitStack() as running:
        for _ in range(_BUSY_PROCESSES):
            process = running.enter_context(subprocess.Popen([sys.executable, "-c", _SPIN]))
            running.callback(process.kill)
        yield


def idle_s() -> float:
    """Returns for how long the processors of this machine have had nothing to do, on average."""
    idle_s: float = psutil.cpu_times().idle / (os.cpu_count() or 1)
    return idle_s
