"""Processes that use all the time of the processors that they can get."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

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
