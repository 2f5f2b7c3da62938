"""Provides the clock by which sessions begin and time their steps. Tests replace this clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic_ns, sleep
from typing import NamedTuple

_LONG_NS = 100_000_000  # a wait of at most this length is a plain sleep, which does not notice `stops`


class Clock(NamedTuple):
    """`sleep_until(time, stops)` sleeps until a time and returns True. It returns False early if `stops` is set."""

    now_ns: Callable[[], int]
    sleep_until: Callable[[int, threading.Event], bool]


def _sleep_until(time_ns: int, stops: threading.Event) -> bool:
    while (left_ns := time_ns - monotonic_ns()) > 0:
        if left_ns <= _LONG_NS:
            sleep(left_ns / 1e9)
        elif stops.wait(left_ns / 2e9):
            return False
    return True


MONOTONIC_CLOCK = Clock(monotonic_ns, _sleep_until)
