"""Tells who shares a session's launches, what sharing saved, and how long the session waited for others. Pure.

A submission of n rows takes a + b n (decision 10). Alone, each of its rows would take a + b. So a row's share of what
is saved is a (n - 1) / n, and it lasts b (n - 1) longer than alone. How far the estimate is wrong is measured too: by
the absolute differences between a + b n and the measured times of the same submissions, relative to these times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_server.engine.launch_records import ProgramName
from fusewire_server.inspect.launches.columns import Rows, began_ns, has_any


class Company(NamedTuple):
    """What the records of one device tell of a session. `shared_with` has by bit how many submissions were shared."""

    submissions: int
    shared_submissions: int
    rows: int
    shared_with: dict[int, int]
    device_ns: int
    saved_ns: int
    longer_ns: int
    waited_ns: int
    error: float
    seconds: float


def company_of(rows: Rows, bit: int, programs: Iterable[ProgramName], others: Iterable[int]) -> Company:
    """Returns the company of the session with this bit. `others` are the bits of sessions to look for."""
    mine = rows[has_any(rows, 1 << bit)]
    beside_ns, own_ns = _costs(mine, programs)
    times = mine["iterations"] / np.maximum(mine["rows"], 1)  # a and b are of an iteration of each row
    beside_ns, own_ns = beside_ns * times, own_ns * times
    n = np.maximum(mine["rows"].astype(np.float64), 1)
    together = {other: int(has_any(mine, 1 << other).sum()) for other in others if other != bit}
    return Company(
        submissions=len(mine),
        shared_submissions=int((mine["rows"] > 1).sum()),
        rows=int(mine["rows"].sum()),
        shared_with={other: count for other, count in together.items() if count},
        device_ns=int(mine["device_ns"].sum()),
        saved_ns=round((beside_ns * (n - 1) / n).sum()),
        longer_ns=round((own_ns * (n - 1)).sum()),
        waited_ns=_waited_ns(rows, mine, bit),
        error=_error(mine, beside_ns, own_ns),
        seconds=float(np.ptp(rows["ended_ns"]) / 1e9) if len(rows) else 0.0,
    )


def _costs(mine: Rows, programs: Iterable[ProgramName]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Returns a and b of each submission, in ns."""
    table = np.zeros((1 << 16, 2))
    for program in programs:
        table[program.number] = program.beside_ns, program.own_ns
    found = table[mine["program"]]
    return found[:, 0], found[:, 1]


def _error(mine: Rows, beside_ns: npt.NDArray[np.float64], own_ns: npt.NDArray[np.float64]) -> float:
    measured_ns = mine["device_ns"].astype(np.float64)
    expected_ns = beside_ns + own_ns * mine["rows"]
    total_ns = measured_ns.sum()
    return float(np.abs(measured_ns - expected_ns).sum() / total_ns) if total_ns else 0.0


def _waited_ns(rows: Rows, mine: Rows, bit: int) -> int:
    """Returns how long the device worked on others' submissions while rows of the session waited for their order.

    The work of others up to a time is a sum that rises while such a submission runs. The submissions of a device follow
    one another, so the sum between two submissions is flat.
    """
    others = rows[~has_any(rows, 1 << bit)]
    if not len(others) or not len(mine):
        return 0
    begins, ends = began_ns(others), others["ended_ns"].astype(np.int64)
    order = np.argsort(ends, kind="stable")
    begins, ends = np.maximum.accumulate(begins[order]), ends[order]
    lasts = np.maximum(ends - begins, 0)
    done = np.cumsum(lasts)
    times = np.stack([begins, ends], axis=1).ravel()
    sums = np.stack([done - lasts, done], axis=1).ravel()
    ordered = np.maximum.accumulate(times)
    to_ns = began_ns(mine).astype(np.float64)
    from_ns = mine["ended_ns"] - mine["order_ns"].astype(np.float64) - mine["queue_ns"]
    waited = np.interp(np.maximum(to_ns, from_ns), ordered, sums) - np.interp(from_ns, ordered, sums)
    return round(float(waited.sum()))
