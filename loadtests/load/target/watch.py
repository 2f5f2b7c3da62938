"""Watches the memory of the server and of the worker processes while a load runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import psutil


class MemorySample(NamedTuple):
    """The resident memory `at_s` seconds after the load began. `server_bytes` is None if its process is unknown."""

    at_s: float
    server_bytes: int | None
    clients_bytes: int


class MemoryWatch:
    """Reads the resident memory of processes."""

    def __init__(self, server_pid: int | None, client_pids: Sequence[int]) -> None:
        self._server = None if server_pid is None else psutil.Process(server_pid)
        self._clients = [psutil.Process(pid) for pid in client_pids]

    def sample(self, at_s: float) -> MemorySample:
        """Reads the memory now. A process that has ended counts as 0 bytes."""
        server_bytes = None if self._server is None else _resident_bytes(self._server)
        return MemorySample(at_s, server_bytes, sum(map(_resident_bytes, self._clients)))


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def growth_bytes_per_s(samples: Sequence[tuple[float, int]]) -> float | None:
    """Returns the slope of memory over time: the median of the slopes between all pairs of samples (Theil and Sen).

    A leak changes this slope, and a single jump does not. Returns None for fewer than two samples.
    """
    slopes = sorted(
        (later - earlier) / (at - since)
        for index, (since, earlier) in enumerate(samples)
        for at, later in samples[index + 1 :]
    )
    return slopes[len(slopes) // 2] if slopes else None
