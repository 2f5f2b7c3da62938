"""Ends this process when its parent ends. The parent holds the other end of this process's standard input."""

from __future__ import annotations

import os
import signal
import sys
import threading


def end_with_stdin() -> None:
    """Sends this process SIGTERM when its standard input ends. A thread waits for the end of standard input."""
    threading.Thread(target=_wait_for_end, name="stdin", daemon=True).start()


def _wait_for_end() -> None:
    while os.read(sys.stdin.fileno(), 1 << 12):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
