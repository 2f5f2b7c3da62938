"""Runs sessions that connect, do one step and vanish, because their process is killed. Processes follow one another.

A session's latency is the time from its call of `connect` until it has read the value of its step. The server keeps a
vanished session for a grace period.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from loadtests.load.options import Options
from loadtests.load.run import Edge, Run, Tell
from loadtests.load.target.left_over import Held, held_by, wait_for_sessions_to_end
from loadtests.load.target.server import ServerUnderLoad
from loadtests.load.target.watch import MemorySample, MemoryWatch
from loadtests.load.windows.samples import joined, windows
from loadtests.load.windows.settling import MEASURED_WINDOWS
from loadtests.load.worker import Lives
from loadtests.measuring.workers import Worker

_FIRST_SESSIONS = 20

OpenWorker = Callable[[tuple[int, ...]], Worker]  # a process for the sessions with these numbers


def baseline(options: Options, server: ServerUnderLoad, open_worker: OpenWorker) -> Held:
    """Runs 20 first sessions, and returns what the server holds once they have vanished and are forgotten.

    The first sessions make the server start what it starts only once, such as the planner's processes.
    """
    before = held_by(server)
    with open_worker(tuple(range(options.sessions, options.sessions + _FIRST_SESSIONS))) as worker:
        worker.ask("live")
        worker.kill()
    wait_for_sessions_to_end(server, before)
    return held_by(server)


def run_vanishing(options: Options, server: ServerUnderLoad, open_worker: OpenWorker, tell: Tell) -> Run:
    """Runs all sessions. Does not wait until the grace periods of the last sessions have passed."""
    began_ns = time.monotonic_ns()
    edges = [_edge(server, ())]
    lives: list[Lives] = []
    memory: list[MemorySample] = []
    for done, share in enumerate(options.shares()):
        tell("sessions come and vanish", done, options.processes)
        with open_worker(share) as worker:
            lives.append(worker.ask("live"))
            watch = MemoryWatch(server.pid, (worker.pid,))
            memory.append(watch.sample((time.monotonic_ns() - began_ns) / 1e9))
            worker.kill()
    edges.append(_edge(server, lives))
    samples = joined([life.samples for life in lives])
    spans = windows(samples, began_ns, edges[0].at_ns, edges[1].at_ns, MEASURED_WINDOWS)
    reports = sorted(report for life in lives for report in life.reports)
    return Run(began_ns, tuple(edges), spans, samples, tuple(reports), tuple(memory), has_settled=True)


def _edge(server: ServerUnderLoad, lives: list[Lives] | tuple[()]) -> Edge:
    stats = None if server.service is None else server.service.stats()
    return Edge(time.monotonic_ns(), tuple(life.usage for life in lives), stats, ())
