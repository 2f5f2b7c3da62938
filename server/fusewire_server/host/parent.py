"""Ends this process together with its parent, which holds the other end of its standard input."""

from __future__ import annotations

import os
import signal
import sys
import threading


def end_with_stdin() -> None:
    """Sends this process SIGTERM when standard input ends. Waits for that in a thread."""
    threading.Thread(target=_wait_for_end, name="stdin", daemon=True).start()


def _wait_for_end() -> None:
    while os.read(sys.stdin.fileno(), 1 << 12):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
