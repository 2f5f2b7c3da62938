"""Tells who shares a session's launches, what sharing saved, and how long the session waited for others. Pure.

A submission of n rows takes a + b n (decision 10). Alone, each of its rows would take a + b. So a row's share of what
is saved is a (n - 1) / n, and it lasts b (n - 1) longer than alone. How far the estimate is wrong is measured too: by
the absolute differences between a + b n and the measured times of the same submissions, relative to these times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusewire_server.engine.launch_records import ProgramName, SessionName
from fusewire_server.figures import Described
from fusewire_server.inspect.launches.columns import Rows, began_ns, has_any


@dataclass(frozen=True)
class CompanionView(Described):
    """A session whose rows ran in the same submissions."""

    session: str
    """Shown id of the session."""
    name: str
    """What its user calls it, or empty."""
    tenant: str
    """Name of its tenant."""
    submissions: int
    """Submissions that both had rows in."""


@dataclass(frozen=True)
class CompanyView(Described):
    """Who shared the launches of a session, and what that saved and cost it.

    A submission of n rows takes a + b n, as the server has learnt. So a row's share of what sharing saves is
    a (n - 1) / n, and the row lasts b (n - 1) longer than alone.
    """

    session: str
    """Shown id of the session."""
    seconds: float
    """Seconds that the launches span."""
    submissions: int
    """Submissions with a row of the session."""
    shared_submissions: int
    """Those of them that had rows of other sessions too."""
    rows: int
    """Rows of these submissions, those of others included."""
    companions: tuple[CompanionView, ...]
    """The sessions that shared some, those that shared most first."""
    other_companions: int
    """Sessions that shared some and that the caller may not see."""
    device_ns: int
    """Device time of these submissions, in nanoseconds."""
    saved_ns: int
    """Device time that sharing saved the session, in nanoseconds, estimated."""
    longer_ns: int
    """Time by which its rows lasted longer because of the rows of others, in nanoseconds, estimated."""
    waited_ns: int
    """Time in which its rows waited while the device worked for others alone, in nanoseconds."""
    error: float
    """How far the estimate is from the measured device time of the same submissions, as a share of that."""


def company_of(
    rows: Rows, bit: int, programs: Iterable[ProgramName], names: Mapping[int, SessionName], tenant: str | None = None
) -> CompanyView:
    """Returns the company of the session with this bit, as a tenant may see it, or None who may see all.

    `names` are those of all sessions by their bits.
    """
    mine = rows[has_any(rows, 1 << bit)]
    beside_ns, own_ns = _costs(mine, programs)
    times = mine["iterations"] / np.maximum(mine["rows"], 1)  # a and b are of an iteration of each row
    beside_ns, own_ns = beside_ns * times, own_ns * times
    n = np.maximum(mine["rows"].astype(np.float64), 1)
    counted = [(name, int(has_any(mine, 1 << other).sum())) for other, name in names.items() if other != bit]
    shared = sorted([each for each in counted if each[1]], key=lambda each: -each[1])
    shown = [
        CompanionView(name.session, name.name, name.tenant, count)
        for name, count in shared
        if tenant in {None, name.tenant}
    ]
    return CompanyView(
        session=names[bit].session,
        seconds=float(np.ptp(rows["ended_ns"]) / 1e9) if len(rows) else 0.0,
        submissions=len(mine),
        shared_submissions=int((mine["rows"] > 1).sum()),
        rows=int(mine["rows"].sum()),
        companions=tuple(shown),
        other_companions=len(shared) - len(shown),
        device_ns=int(mine["device_ns"].sum()),
        saved_ns=round((beside_ns * (n - 1) / n).sum()),
        longer_ns=round((own_ns * (n - 1)).sum()),
        waited_ns=_waited_ns(rows, mine, bit),
        error=_error(mine, beside_ns, own_ns),
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
