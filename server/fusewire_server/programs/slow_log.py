"""Defines the entries of the slow log: the last submissions that took the device long. Plain data."""

from __future__ import annotations

from typing import NamedTuple

SLOW_NS = 10_000_000  # the least device time of a submission in the log
MOST_KEPT = 128


class SlowSubmission(NamedTuple):
    """A submission that took the device at least `SLOW_NS`.

    `session_id` and `base` are those of its row that came first, and `total_ns` is the time from the coming of that row
    to the end of the submission. `op` is the index of the program's only op, or None if the program has several.
    """

    ended_at_s: float  # Unix time
    session_id: bytes
    digest: bytes  # of the program
    base: int
    op: int | None
    tier: int
    rows: int
    ops: int  # of all rows
    total_ns: int
    device_ns: int
