"""Makes calls side by side, each in a copy of this process. A copy ends with the process that has made it."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial

_COPIES = multiprocessing.get_context("fork")
_PR_SET_PDEATHSIG = 1

Call = Callable[[], object]


def end_with_parent() -> None:
    """Has the kernel kill this process when the thread that started it ends. Works on Linux only."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def call_in_forks(calls: Sequence[Call]) -> list[int]:
    """Makes the first call here and each other one in a copy, and waits for all of them.

    Returns the exit status of each copy: 0 if the call returned, 1 if it raised an error, and the negative number of
    the signal that ended the copy. Raises what the first call raises, and OSError if a copy cannot be made.
    """
    copies = []
    try:
        for call in calls[1:]:
            copy = _COPIES.Process(target=partial(_call, call, os.getpid()))
            copy.start()
            copies.append(copy)
        for call in calls[:1]:
            call()
    finally:
        for copy in copies:
            copy.join()
    return [copy.exitcode or 0 for copy in copies]


def _call(call: Call, parent: int) -> None:
    end_with_parent()
    if os.getppid() != parent:  # it has ended before the line above
        sys.exit(1)
    try:
        call()
    except Exception:  # noqa: BLE001 - whoever asked for the copy learns of the error by the exit status
        sys.exit(1)
