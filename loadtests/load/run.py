"""Runs a load in windows until it has settled, and keeps everything that was measured at the edges of the windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from loadtests.load.options import Options
from loadtests.load.runners.runner import RunnerReport
from loadtests.load.target.watch import MemorySample, MemoryWatch
from loadtests.load.windows.samples import Samples, Window, joined, window
from loadtests.load.windows.settling import MEASURED_WINDOWS, MOST_WINDOWS, has_settled
from loadtests.load.worker import Taken, Usage
from loadtests.measuring.errors import LoadFailed
from loadtests.measuring.workers import Fleet
from loadtests.system.service import Service

_WATCH_EVERY_S = 0.5
_PLANNING_DEADLINE_S = 60.0

Tell = Callable[[str, int, int], None]  # shows progress: what is being done, windows done, windows at most


class Edge(NamedTuple):
    """What was read at the begin or the end of a window."""

    at_ns: int
    usage: tuple[Usage, ...]  # one for each worker process
    stats: Mapping[str, Any] | None  # the server's statistics, if its inspection is known
    sessions: Sequence[Mapping[str, Any]]  # the sessions as inspection describes them

    @property
    def ops(self) -> int:
        return sum(usage.ops for usage in self.usage)

    @property
    def processor_s(self) -> float:
        return sum(usage.processor_s for usage in self.usage)


class Run(NamedTuple):
    """A load from its begin to its end. The last three windows are measured; all before them is warm-up."""

    began_ns: int
    edges: tuple[Edge, ...]
    windows: tuple[Window, ...]
    samples: Samples
    reports: tuple[RunnerReport, ...]
    memory: tuple[MemorySample, ...]
    has_settled: bool

    @property
    def first(self) -> Edge:
        """The edge at which the measured windows begin."""
        return self.edges[max(len(self.edges) - 1 - MEASURED_WINDOWS, 0)]

    @property
    def last(self) -> Edge:
        return self.edges[-1]


class _Load:
    """A load that is under way. Its methods raise LoadFailed once all sessions have failed."""

    def __init__(self, fleet: Fleet, sessions: int, service: Service | None, watch: MemoryWatch) -> None:
        self._fleet = fleet
        self._sessions = sessions
        self._service = service
        self._watch = watch
        self._parts: list[Samples] = []
        self._errors: dict[int, str] = {}
        self.memory: list[MemorySample] = []
        self.began_ns = time.monotonic_ns()
        fleet.ask("begin", self.began_ns)

    def wait_until(self, at_ns: int) -> None:
        """Waits until a time. Meanwhile samples memory, and fetches the steps that the worker processes have noted.

        The steps are fetched early, so that they do not fill the memory of the worker processes.
        """
        while (left_s := (at_ns - time.monotonic_ns()) / 1e9) > 0:
            self._take()
            self.memory.append(self._watch.sample((time.monotonic_ns() - self.began_ns) / 1e9))
            time.sleep(min(left_s, _WATCH_EVERY_S))

    def edge(self) -> Edge:
        """Fetches the steps done so far, and reads the counts of the worker processes and of the server."""
        at_ns = time.monotonic_ns()
        self._take()
        stats = None if self._service is None else self._service.stats()
        sessions = [] if self._service is None else self._service.sessions()
        return Edge(at_ns, tuple(self._fleet.ask("usage")), stats, sessions)

    def window(self, began_ns: int, ended_ns: int) -> Window:
        return window(self.samples(), self.began_ns, began_ns, ended_ns)

    def end(self) -> tuple[RunnerReport, ...]:
        reports = [report for part in self._fleet.ask("end") for report in part]
        self._take()
        return tuple(sorted(reports))

    def samples(self) -> Samples:
        self._parts = [joined(self._parts)]
        return self._parts[0]

    def _take(self) -> None:
        taken: list[Taken] = self._fleet.ask("take")
        for samples, errors in taken:
            self._parts.append(samples)
            self._errors.update(errors)
        _check(self._errors, self._sessions)


def run_load(fleet: Fleet, options: Options, service: Service | None, watch: MemoryWatch, tell: Tell) -> Run:
    """Runs the sessions of a fleet until the load has settled, or for the most windows that a load may take.

    The sessions must have done their first step. Raises LoadFailed if all sessions have failed.
    """
    load = _Load(fleet, options.sessions, service, watch)
    if service is not None:
        _wait_for_plans(load, service, options.window_s)
    edges, windows = [load.edge()], list[Window]()
    while not has_settled(windows) and len(windows) < MOST_WINDOWS:
        tell("measuring" if windows else "warming up", len(windows), MOST_WINDOWS)
        load.wait_until(edges[-1].at_ns + round(options.window_s * 1e9))
        edges.append(load.edge())
        windows.append(load.window(edges[-2].at_ns, edges[-1].at_ns))
    reports = load.end()
    _check({report.session: report.error for report in reports if report.error is not None}, options.sessions)
    return Run(
        load.began_ns, tuple(edges), tuple(windows), load.samples(), reports, tuple(load.memory), has_settled(windows)
    )


def _check(errors: Mapping[int, str], sessions: int) -> None:
    """Raises LoadFailed if all sessions have failed."""
    if len(errors) == sessions:
        session = min(errors)
        raise LoadFailed(f"every session failed; session {session}: {errors[session]}")


def _wait_for_plans(load: _Load, service: Service, least_s: float) -> None:
    """Lets the load run for `least_s` seconds, and then on, at most a minute, until the server plans no program."""
    load.wait_until(time.monotonic_ns() + round(least_s * 1e9))
    ends_at_ns = time.monotonic_ns() + round(_PLANNING_DEADLINE_S * 1e9)
    while service.is_planning() and time.monotonic_ns() < ends_at_ns:
        load.wait_until(time.monotonic_ns() + round(_WATCH_EVERY_S * 1e9))
