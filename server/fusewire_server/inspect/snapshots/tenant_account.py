"""What the sessions of a tenant have used. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fusewire_server.figures import Described, counter
from fusewire_server.inspect.snapshots.histogram import Bucket, Histogram

_LATENCY_ENDS = tuple([2**power for power in range(13, 38, 2)])  # in ns: from 8 µs to 137 s


def _latency(phase: str) -> Any:
    return counter(
        "latency_seconds",
        lambda usage: _durations(getattr(usage, phase)),
        labels={"phase": phase, "le": _LATENCY_ENDS},
        default=Histogram(),
    )


def _durations(durations: Any) -> Histogram:
    buckets = [Bucket(1 << bits, count) for bits, count in enumerate(durations.counts) if count]
    return Histogram(tuple(buckets), durations.total_ns)


@dataclass(frozen=True)
class TenantAccount(Described):
    """What the sessions of a tenant have used, ended ones included."""

    loop_ns: int = counter("tenant_loop_seconds")
    """Time of the engine thread that frames have used, by tenant, in ns."""
    device_ns: int = counter("tenant_device_seconds")
    """Device time that rows have used, by tenant, in ns."""
    planner_ns: int = counter("tenant_planner_seconds")
    """Time of the planner for programs that a session was the first to ask for, by tenant, in ns."""
    sessions: int = counter("tenant_sessions")
    """Number of sessions that were opened, by tenant."""
    ops: int = counter("tenant_ops")
    """Number of ops that came, by tenant."""
    segments: int = counter("tenant_segments")
    """Number of segments that came, by tenant."""
    received_bytes: int = counter("tenant_received_bytes")
    """Bytes from clients, by tenant."""
    sent_bytes: int = counter("tenant_sent_bytes")
    """Bytes to clients, by tenant."""
    queue_ns: Histogram = _latency("queue")
    """Time in ns of segments from their coming to their order to the device."""
    launch_ns: Histogram = _latency("launch")
    """Time in ns of segments from their order to their end, without the device's time."""
    device_part_ns: Histogram = _latency("device")
    """Time in ns of the device for the submissions of segments."""
    answer_ns: Histogram = _latency("answer")
    """Time in ns of fetches from the order to bring the value to their answer."""
    wait_ns: Histogram = _latency("wait")
    """Time in ns of fetches from their coming to their answer."""
