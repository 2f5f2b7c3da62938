"""The deadlines of waits, which users give as a number of seconds or None."""

from __future__ import annotations

import math
import threading
import time
from numbers import Real

from fusewire._errors import ArgumentError

_LONGEST_WAIT_S = threading.TIMEOUT_MAX / 2  # users may pass infinity, but waiting on a lock raises for infinity


def deadline_after(timeout_s: float | None) -> float | None:
    """Returns the time `timeout_s` seconds from now, on the monotonic clock; None if `timeout_s` is None.

    Raises ArgumentError if `timeout_s` is neither a number nor None.
    """
    if timeout_s is None:
        return None
    if not isinstance(timeout_s, Real) or math.isnan(timeout_s):
        raise ArgumentError(f"a timeout is a number of seconds, not {timeout_s!r}")
    return time.monotonic() + float(timeout_s)


def left_s(deadline_s: float | None) -> float | None:
    """Returns how many seconds a wait may last until the deadline; None if there is no deadline."""
    return None if deadline_s is None else min(max(deadline_s - time.monotonic(), 0.0), _LONGEST_WAIT_S)
