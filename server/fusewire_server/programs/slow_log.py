"""Keeps the last segments that took long, so that an operator finds what delays clients. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

SLOW_NS = 10_000_000
MOST_KEPT = 128


class SlowSegment(NamedTuple):
    """A segment that took at least `SLOW_NS` from its arrival until the device had completed it.

    `base` is the handle of its op number 0. `ops` counts the ops of its program, which runs `iterations` times if the
    segment is a loop. `rows` counts the rows of the submission that it was part of. `queue_ns` passed until the device
    was told to run this submission, and `device_ns` is the device time of the submission. Of a loop that ran in several
    submissions, these are of the last. `planning_ns` and `compiling_ns` are of its program; segments do not wait for
    either.
    """

    at_s: float  # Unix time
    session_id: bytes
    digest: bytes
    base: int
    ops: int
    iterations: int
    tier: int
    rows: int
    total_ns: int
    queue_ns: int
    device_ns: int
    planning_ns: int
    compiling_ns: int

    @property
    def order_ns(self) -> int:
        """The time from the order to the end of the submission in which the device did not work on it."""
        return max(self.total_ns - self.queue_ns - self.device_ns, 0)


class SlowLog:
    """The newest slow segments. The engine thread owns it."""

    def __init__(self) -> None:
        self._kept: deque[SlowSegment] = deque(maxlen=MOST_KEPT)

    def add(self, segment: SlowSegment) -> None:
        self._kept.append(segment)

    def newest_first(self) -> Iterable[SlowSegment]:
        return reversed(self._kept)
