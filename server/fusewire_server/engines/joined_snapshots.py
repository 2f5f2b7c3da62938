"""Joins the snapshots of several engines in one. Pure.

Sessions are told one after another, and a program that several engines know once. Counters and sizes are added, and of
times that somebody waits the longest is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

from fusewire_server.inspect.snapshots.snapshot import (
    BackendView,
    Bucket,
    DeviceView,
    Histogram,
    KernelWaits,
    KernelWaitView,
    Memory,
    ProgramDetail,
    Queue,
    Snapshot,
    Stats,
)

_MOST_LISTED = 100
_ADDED = (
    "sessions",
    "sessions_without_credit",
    "program_bytes",
    "queue",
    "kernel_waits",
    "session_bytes",
    "host_memory",
    "totals",
    "phases",
    "launching",
    "memory",
    "process",
    "rows_per_launch",
    "ops_per_launch",
)


class DeviceSnapshot(NamedTuple):
    """What is known of one device: of an engine that has ended, why, and what it had before."""

    number: int
    snapshot: Snapshot | None
    trouble: str = ""


def joined(own: Snapshot, devices: Sequence[DeviceSnapshot], ended: Iterable[Snapshot] = ()) -> Snapshot:
    """Returns the snapshot of a server. `own` is that of the process in front, `ended` are what is left of engines."""
    running = [each.snapshot for each in devices if each.snapshot is not None]
    stats = reduce(_stats_plus, [each.stats for each in (own, *running, *ended)])
    programs = _programs([each.programs for each in running])
    return Snapshot(
        stats=replace(
            stats,
            backend=_backend([each.stats.backend for each in running] or [own.stats.backend]),
            trouble="; ".join(dict.fromkeys([each.stats.trouble for each in running if each.stats.trouble])),
            programs=len(programs),
            devices=tuple([_device_view(each) for each in devices]),
        ),
        sessions=tuple([view for each in running for view in each.sessions]),
        programs=programs,
        tenant_times=reduce(added, [each.tenant_times for each in (own, *running, *ended)]),
        tenant_host_bytes=reduce(added, [each.tenant_host_bytes for each in (own, *running)]),
        tenant_device_bytes=reduce(added, [each.tenant_device_bytes for each in (own, *running)]),
        taken_at_ns=min([each.taken_at_ns for each in (own, *running)]),
    )


def left_of(snapshot: Snapshot, before: Snapshot | None = None) -> Snapshot:
    """Returns what counts of an engine that has ended, with what is left of those before it on its device.

    These are its counters, so that those of the server never fall.
    """
    stats, memory = snapshot.stats, snapshot.stats.memory
    counters = Stats(
        instance=stats.instance,
        version=stats.version,
        started_at=stats.started_at,
        backend=stats.backend,
        is_ready=False,
        totals=stats.totals,
        phases=stats.phases,
        launching=replace(stats.launching, graphs=0),
        memory=Memory(donations=memory.donations, donated_bytes=memory.donated_bytes),
        rows_per_launch=stats.rows_per_launch,
        ops_per_launch=stats.ops_per_launch,
    )
    if before is None:
        return Snapshot(counters, tenant_times=snapshot.tenant_times)
    times = added(before.tenant_times, snapshot.tenant_times)
    return Snapshot(_stats_plus(before.stats, counters), tenant_times=times)


def added(one: Any, other: Any) -> Any:
    """Adds numbers, and what consists of numbers: field by field, or key by key. None is nothing."""
    if one is None or other is None:
        return other if one is None else one
    match one:
        case int() | float():
            return one + other
        case Mapping():
            return {key: added(one.get(key), other.get(key)) for key in {**one, **other}}
        case Queue():
            return replace(_fields_added(one, other), oldest_s=max(one.oldest_s, other.oldest_s))
        case KernelWaits():
            return _waits_added(one, other)
        case Histogram():
            return _histograms_added(one, other)
        case tuple():
            return type(one)(*map(added, one, other))
    return _fields_added(one, other)


def _fields_added(one: Any, other: Any) -> Any:
    both = {each.name: added(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)}
    return replace(one, **both)


def _histograms_added(one: Histogram, other: Histogram) -> Histogram:
    counts: defaultdict[int, int] = defaultdict(int)
    for bucket in (*one.buckets, *other.buckets):
        counts[bucket.at_most] += bucket.count
    return Histogram(tuple([Bucket(end, counts[end]) for end in sorted(counts)]), one.total + other.total)


def _waits_added(one: KernelWaits, other: KernelWaits) -> KernelWaits:
    oldest: list[KernelWaitView] = sorted((*one.oldest, *other.oldest), key=attrgetter("waited_s"), reverse=True)
    return KernelWaits(
        one.kernels + other.kernels,
        one.sessions + other.sessions,
        max(one.oldest_s, other.oldest_s),
        tuple(oldest[:_MOST_LISTED]),
    )


def _stats_plus(one: Stats, other: Stats) -> Stats:
    return replace(
        one,
        is_ready=one.is_ready or other.is_ready,
        is_draining=one.is_draining or other.is_draining,
        is_held=one.is_held or other.is_held,
        **{name: added(getattr(one, name), getattr(other, name)) for name in _ADDED},
    )


def _backend(backends: Sequence[BackendView]) -> BackendView:
    first = backends[0]
    return replace(
        first,
        device=first.device if len(backends) == 1 else f"{len(backends)} × {first.device}",
        memory_bytes=sum(each.memory_bytes for each in backends),
        has_compiler=all(each.has_compiler for each in backends),
    )


def _device_view(device: DeviceSnapshot) -> DeviceView:
    if device.snapshot is None:
        return DeviceView(device.number, "", is_ready=False, trouble=device.trouble)
    stats = device.snapshot.stats
    return DeviceView(
        device.number,
        stats.backend.device,
        stats.is_ready,
        stats.trouble,
        stats.sessions,
        stats.backend.memory_bytes,
        stats.memory.live_bytes,
        stats.memory.pool_bytes,
        stats.phases.device.total_ns,
    )


def _programs(lists: Iterable[Iterable[ProgramDetail]]) -> tuple[ProgramDetail, ...]:
    known: dict[str, ProgramDetail] = {}
    for detail in (each for programs in lists for each in programs):
        before = known.get(detail.program.digest)
        known[detail.program.digest] = detail if before is None else _same_program(before, detail)
    return tuple(known.values())


def _same_program(one: ProgramDetail, other: ProgramDetail) -> ProgramDetail:
    """Returns a program that two engines know: as it is where it has come further, with the counts of both."""
    further, behind = (one, other) if one.program.tier >= other.program.tier else (other, one)
    names = ("hits", "rows", "submissions", "planning_ns", "compiling_ns", "rows_per_launch", "launching")
    counts = {name: added(getattr(further.program, name), getattr(behind.program, name)) for name in names}
    return replace(further, program=replace(further.program, **counts))
