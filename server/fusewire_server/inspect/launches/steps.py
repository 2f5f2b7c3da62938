"""Measures the steps of each session: the time from the end of one of its submissions to the end of the next. Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fusewire_server.inspect.launches.columns import Rows, has_any

_MOST_COUNTED = 8192  # of the newest records


class Steps(NamedTuple):
    """The steps of one session, in seconds: half are as short as `p50_s`, and 99 of 100 as short as `p99_s`."""

    p50_s: float
    p99_s: float
    measured: int


def steps_of(rows: Rows, bits: list[int]) -> dict[int, Steps]:
    """Returns the steps of the sessions with these bits by bit. `rows` are those of one device."""
    newest = rows[-_MOST_COUNTED:]
    found = {}
    for bit in bits:
        steps_ns = np.sort(np.diff(newest["ended_ns"][has_any(newest, 1 << bit)].astype(np.int64)))
        count = len(steps_ns)
        if count >= 2:
            p50_ns, p99_ns = (int(steps_ns[min(count * part // 100, count - 1)]) for part in (50, 99))
            found[bit] = Steps(p50_ns / 1e9, p99_ns / 1e9, count)
    return found
