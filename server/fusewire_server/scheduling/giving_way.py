"""Chooses the runs that give back reserved memory when other orders need it. Pure.

A run at tier 0 reserves memory for its intermediate values. Other orders may need that memory. These orders must not
wait until the run ends, because that may take hours, and must not be refused memory because of the run. So the run
gives its reservation back, and starts its row again when there is memory. That changes no result, because a row at tier
0 writes its results only after all its ops have run, and until then its inputs are unchanged. An allocation of a value
may take the reservation of any run. A run may take the reservations of larger runs only, and waits for the other runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Run = TypeVar("Run")


def giving_way(reserved_bytes: Mapping[Run, int], lacking_bytes: int, *, above_bytes: int) -> list[Run]:
    """Chooses the runs that give back their reservations so that `lacking_bytes` more are free, the largest first.

    Only runs that reserve more than `above_bytes` are chosen. The list is empty if all such runs together free too
    little.
    """
    chosen: list[Run] = []
    for run in sorted(reserved_bytes, key=reserved_bytes.__getitem__, reverse=True):
        if lacking_bytes <= 0 or reserved_bytes[run] <= above_bytes:
            break
        chosen.append(run)
        lacking_bytes -= reserved_bytes[run]
    return chosen if lacking_bytes <= 0 else []
