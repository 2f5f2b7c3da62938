"""Compares what a server holds after a load with what it held before: sessions, values, tasks, descriptors, memory."""

from __future__ import annotations

import time
from typing import NamedTuple

import psutil

from loadtests.load.server import ServerUnderLoad

_SETTLES_WITHIN_S = 2.0
_LOOK_EVERY_S = 0.1
_LONGEST_GRACE_S = 60.0


class Held(NamedTuple):
    """What a server holds. A field is None without inspection, or, in the second line, if the server runs elsewhere."""

    sessions: int | None
    live_bytes: int | None
    tasks: int | None
    descriptors: int | None
    threads: int | None
    resident_bytes: int | None


class LeftOver(NamedTuple):
    """What a server held before a load, and after the last session had ended and 2 s had passed at most."""

    before: Held
    after: Held
    within_s: float  # the time until everything was given back, or the deadline

    @property
    def is_clean(self) -> bool:
        """Whether all counts are back; memory is reported and not judged, because allocators keep pages."""
        return _is_back(self.before, self.after)


def held_by(server: ServerUnderLoad) -> Held:
    """What the server holds now, as it published last."""
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
    """Waits until the server has no more sessions than before: those that vanished live on for a grace period."""
    ends_at_s = time.monotonic() + _LONGEST_GRACE_S
    while time.monotonic() < ends_at_s:
        sessions = held_by(server).sessions
        if sessions is None or before.sessions is None or sessions <= before.sessions:
            return
        time.sleep(_LOOK_EVERY_S)


def left_over(server: ServerUnderLoad, before: Held) -> LeftOver:
    """Waits until everything is given back, for 2 s at most."""
    began_s = time.monotonic()
    after = held_by(server)
    while not _is_back(before, after) and time.monotonic() < began_s + _SETTLES_WITHIN_S:
        time.sleep(_LOOK_EVERY_S)
        after = held_by(server)
    return LeftOver(before, after, time.monotonic() - began_s)


def _is_back(before: Held, after: Held) -> bool:
    counts = zip(before._replace(resident_bytes=None), after._replace(resident_bytes=None), strict=True)
    return all(now is None or then is None or now <= then for then, now in counts)
