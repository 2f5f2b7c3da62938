"""Waits until something holds that nothing announces, with a bound."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_POLLED_EVERY_S = 0.25


def until(holds: Callable[[], bool], what: str, within_s: float) -> None:
    """Asks again and again until `holds` is true. Raises AssertionError with `what` if it is not within the time."""
    pause, ends_at_s = threading.Event(), time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < ends_at_s, f"not within {within_s:.0f} s: {what}"
        pause.wait(_POLLED_EVERY_S)
