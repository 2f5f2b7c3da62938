"""Replays a recording as load: several sessions run at the same time, and each sends the whole recording once."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import fusewire as fw
from loadtests.load.left_over import held_by, left_over, wait_for_sessions_to_end
from loadtests.load.load_test import Load, LoadResult
from loadtests.load.options import Options
from loadtests.load.run import Edge, Run, Tell
from loadtests.load.samples import Samples, joined, of_steps, windows
from loadtests.load.server import Access, ServerUnderLoad
from loadtests.load.session_runner import RunnerReport
from loadtests.load.settling import MEASURED_WINDOWS
from loadtests.load.verification import Verification
from loadtests.load.watch import MemoryWatch
from loadtests.load.worker import Usage, ignore_interrupts, usage
from loadtests.measuring.errors import LoadFailed
from loadtests.measuring.workers import Fleet, answer_commands
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_DEADLINE_S = 3600.0


class _Replays(NamedTuple):
    """The results of one worker process. `by_session` maps a session's number to its replay, or to why this failed."""

    by_session: dict[int, fw.Replayed | str]
    usage: Usage


def scenario_of(path: Path) -> Scenario:
    """Returns the scenario that the result names for a replay. Its program is never run."""
    return Scenario(
        name="replay",
        what=f"sends what the recording {path.name} holds; a step is the answer of a fetch",
        shows="how a server holds under a load that was recorded",
        program=_no_program,
        needs_plans=False,
        peers=(),
    )


def run_replays(path: Path, speed: float, options: Options, server: ServerUnderLoad, tell: Tell) -> LoadResult:
    """Replays a recording in all sessions. Raises LoadFailed if a worker process fails, or if all replays fail."""
    before = held_by(server)
    arguments = [(path, speed, options.seed, server.access, share) for share in options.shares()]
    with Fleet(_serve, arguments) as fleet:
        watch = MemoryWatch(server.pid, fleet.pids)
        began_ns = time.monotonic_ns()
        edges = [Edge(began_ns, tuple(fleet.ask("usage")), *_read(server))]
        tell("replaying", 0, 0)
        fleet.tell("replay")
        parts: list[_Replays] = fleet.answers(_DEADLINE_S)
        edges.append(Edge(time.monotonic_ns(), tuple(part.usage for part in parts), *_read(server)))
        memory = (watch.sample((edges[1].at_ns - began_ns) / 1e9),)
    replays = {session: found for part in parts for session, found in part.by_session.items()}
    samples = joined([_samples(session, found) for session, found in replays.items() if isinstance(found, fw.Replayed)])
    spans = windows(samples, began_ns, began_ns, edges[1].at_ns, MEASURED_WINDOWS)
    reports = tuple(_report(session, found) for session, found in sorted(replays.items()))
    if all(report.error is not None for report in reports):
        raise LoadFailed(str(reports[0].error))
    run = Run(began_ns, tuple(edges), spans, samples, reports, memory, has_settled=True)
    wait_for_sessions_to_end(server, before)
    return LoadResult(Load(run, {}, None), None, None, _verification(replays), left_over(server, before))


def _serve(
    connection: Connection, path: Path, speed: float, seed: int, access: Access, sessions: tuple[int, ...]
) -> None:
    """Runs in a worker process. Replays the recording in one thread for each session."""
    ignore_interrupts()

    def replay_one(session: int) -> fw.Replayed | str:
        try:
            return fw.replay(path, **access._asdict(), speed=speed, seed=seed + session, timeout=_DEADLINE_S)
        except fw.FusewireError as error:
            return f"{type(error).__name__}: {error}"

    def replay() -> _Replays:
        with ThreadPoolExecutor(len(sessions)) as threads:
            found = dict(zip(sessions, threads.map(replay_one, sessions), strict=True))
        ops = sum(one.ops for one in found.values() if isinstance(one, fw.Replayed))
        return _Replays(found, usage(ops))

    answer_commands(connection, {"replay": replay, "usage": partial(usage, 0)})
    os._exit(0)


def _read(server: ServerUnderLoad) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    if server.service is None:
        return None, []
    return server.service.stats(), server.service.sessions()


def _samples(session: int, replayed: fw.Replayed) -> Samples:
    return of_steps(
        [(session, intended_ns, intended_ns, answered_ns) for intended_ns, answered_ns in replayed.answered]
    )


def _report(session: int, found: fw.Replayed | str) -> RunnerReport:
    if isinstance(found, str):
        return RunnerReport(session, 0, found, b"")
    return RunnerReport(session, len(found.answered), None, b"")


def _verification(replays: Mapping[int, fw.Replayed | str]) -> Verification | None:
    """Returns the comparison of the answers with the recorded values; None if the recording holds no values."""
    done = {session: found for session, found in replays.items() if isinstance(found, fw.Replayed)}
    differences = [f"session {session}: {told}" for session, found in done.items() for told in found.differences]
    compared = sum(found.compared for found in done.values())
    return Verification(compared, tuple(differences)) if compared or differences else None


def _no_program(_xp: Library, _data: Data) -> Steps:
    raise AssertionError("a recording has no program")
    yield
