"""Sets Linux timer slack to 1 µs; the default delays lock waits by up to 50 µs.

Linux may delay the end of each timed wait by up to 50 µs, so that the wake-ups of several threads fall together. A
Python thread that needs the interpreter lock waits for it with a time limit, and asks the holder to release the lock
when this time has passed. Such waits happen several times in each step of a client's loop.
"""

from __future__ import annotations

import ctypes
import platform

SLACK_NS = 1_000
_SET_TIMER_SLACK = 29  # of prctl(2)


def reduce_timer_slack() -> None:
    """Sets the timer slack of this thread, and of all threads that this thread starts later.

    Does nothing on systems other than Linux.
    """
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, SLACK_NS, 0, 0, 0)
