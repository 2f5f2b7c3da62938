"""Ends this process with the one that started it, which holds the other end of its standard input."""

from __future__ import annotations

import os
import signal
import sys
import threading


def end_with_stdin() -> None:
    """From now on the end of standard input is as good as SIGTERM."""
    threading.Thread(target=_wait_for_end, name="stdin", daemon=True).start()


def _wait_for_end() -> None:
    while os.read(sys.stdin.fileno(), 1 << 12):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
