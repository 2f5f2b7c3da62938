"""Compares what a server holds after a load with what it held before: sessions, values, tasks, descriptors, memory."""

from __future__ import annotations

import time
from typing import NamedTuple

import psutil

from loadtests.load.target.server import ServerUnderLoad

_SETTLES_WITHIN_S = 2.0
_LOOK_EVERY_S = 0.1
_LONGEST_GRACE_S = 60.0


class Held(NamedTuple):
    """What a server holds at one time.

    The first three fields come from the server's inspection, and are None without inspection. The other fields come
    from the operating system, and are None if the load test did not start the server itself.
    """

    sessions: int | None
    live_bytes: int | None
    tasks: int | None
    descriptors: int | None
    threads: int | None
    resident_bytes: int | None


class LeftOver(NamedTuple):
    """What a server held before a load, and what it holds at most 2 s after the last session has ended."""

    before: Held
    after: Held
    within_s: float  # the time until everything was given back; about 2 s if something was not given back

    @property
    def is_clean(self) -> bool:
        """Whether no count is higher than before. Resident memory is not judged, because allocators keep pages."""
        return _is_back(self.before, self.after)


def held_by(server: ServerUnderLoad) -> Held:
    """Returns what the server holds now. The server counts its tasks at most once a second."""
    stats = {} if server.service is None else server.service.stats()
    process = None if server.pid is None else psutil.Process(server.pid)
    return Held(
        stats.get("sessions"),
        stats["memory"]["live_bytes"] if stats else None,
        stats.get("process", {}).get("tasks"),
        None if process is None else process.num_fds(),
        None if process is None else process.num_threads(),
        None if process is None else process.memory_info().rss,
    )


def wait_for_sessions_to_end(server: ServerUnderLoad, before: Held) -> None:
    """Waits, at most a minute, until the server has no more sessions than before.

    A server keeps a session that has vanished for a grace period.
    """
    ends_at_s = time.monotonic() + _LONGEST_GRACE_S
    while time.monotonic() < ends_at_s:
        sessions = held_by(server).sessions
        if sessions is None or before.sessions is None or sessions <= before.sessions:
            return
        time.sleep(_LOOK_EVERY_S)


def left_over(server: ServerUnderLoad, before: Held) -> LeftOver:
    """Waits, at most 2 s, until the server has given back everything. Returns what it held before and now."""
    began_s = time.monotonic()
    after = held_by(server)
    while not _is_back(before, after) and time.monotonic() < began_s + _SETTLES_WITHIN_S:
        time.sleep(_LOOK_EVERY_S)
        after = held_by(server)
    return LeftOver(before, after, time.monotonic() - began_s)


def _is_back(before: Held, after: Held) -> bool:
    counts = zip(before._replace(resident_bytes=None), after._replace(resident_bytes=None), strict=True)
    return all(now is None or then is None or now <= then for then, now in counts)
