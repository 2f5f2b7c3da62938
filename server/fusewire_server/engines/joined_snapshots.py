"""Joins the snapshots of several engines in one, as the figures declare it. Pure.

Sessions are told one after another, and a program that several engines know once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from fusewire_server.figures import joined, read, what_stays
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.stats import DeviceView


class DeviceSnapshot(NamedTuple):
    """What is known of one device: of an engine that has ended, why, and what it had before."""

    number: int
    snapshot: Snapshot | None
    trouble: str = ""


def joined_snapshots(own: Snapshot, devices: Sequence[DeviceSnapshot], ended: Iterable[Snapshot] = ()) -> Snapshot:
    """Returns the snapshot of a server. `own` is that of the process in front, `ended` are what is left of engines."""
    running = [each.snapshot for each in devices if each.snapshot is not None]
    whole = joined([own, *running, *ended])
    stats = replace(
        whole.stats,
        backend=joined([each.stats.backend for each in running] or [own.stats.backend]),
        programs=len(whole.programs),
        program_tiers=Counter([str(each.program.tier) for each in whole.programs]),
        devices_unready=sum([each.snapshot is None or not each.snapshot.stats.is_ready for each in devices]),
        devices=tuple([_device_view(each) for each in devices]),
    )
    return replace(whole, stats=stats, taken_at_ns=min([each.taken_at_ns for each in (own, *running)]))


def left_of(snapshot: Snapshot, before: Snapshot | None = None) -> Snapshot:
    """Returns what counts of an engine that has ended, with what is left of those before it on its device.

    These are its counters, so that those of the server never fall.
    """
    left = what_stays(snapshot)
    return left if before is None else joined([left, before])


def _device_view(device: DeviceSnapshot) -> DeviceView:
    if device.snapshot is None:
        return DeviceView(device.number, trouble=device.trouble)
    return read(DeviceView, device)
