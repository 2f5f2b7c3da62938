"""Replays a recording as load: several sessions run at the same time, and each repeats the whole recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fusewire._replay.records import Answer, Recording
from loadtests.load import worker
from loadtests.load.checks.verification import Verification
from loadtests.load.load_test import Load, LoadResult
from loadtests.load.options import Options
from loadtests.load.run import Tell, run_load
from loadtests.load.runners.replay_runner import Repeated
from loadtests.load.runners.runner import RunnerReport
from loadtests.load.target.left_over import held_by, left_over, wait_for_sessions_to_end
from loadtests.load.target.server import ServerUnderLoad
from loadtests.load.target.watch import MemoryWatch
from loadtests.load.worker import FUSEWIRE, Assignment
from loadtests.measuring.errors import LoadFailed
from loadtests.measuring.workers import Fleet, Worker
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_LEAST_TIMEOUT_S = 60.0
_MOST_TIMES = 10.0  # as long as the recorded session may a replay take, if that is more


def scenario_of(path: Path) -> Scenario:
    """Returns the scenario that the result names for a replay. Its program is never run."""
    return Scenario(
        name="replay",
        what=f"sends what the recording {path.name} holds, again and again; a step is the answer of a fetch",
        shows="how a server holds under a load that was recorded",
        program=_no_program,
        peers=(),
    )


def repeated(path: Path, speed: float) -> Repeated:
    """Reads a recording. Raises LoadFailed if there is nothing to be timed, and ConfigurationError if it is broken."""
    with Recording(path) as recording:
        records = [(record.at_ns, isinstance(record, Answer)) for record in recording.records()]
    answers = sum(is_answer for _, is_answer in records)
    if not answers:
        raise LoadFailed(f"the recording {path} holds no answer of a fetch, so there is nothing to be timed")
    recorded_s = max(at_ns for at_ns, _ in records) / 1e9
    return Repeated(path, speed, answers, max(_LEAST_TIMEOUT_S, _MOST_TIMES * recorded_s / min(speed, 1.0)))


def run_replays(recording: Repeated, options: Options, server: ServerUnderLoad, tell: Tell) -> LoadResult:
    """Replays a recording once, so that the server knows its programs, and then in all sessions until it has settled.

    Raises LoadFailed if a worker process, the first replay or all sessions fail.
    """
    before = held_by(server)
    name, sessions, seed, rate_per_s = options.scenario.name, options.sessions, options.seed, options.rate_per_s
    assignments = [
        Assignment(name, FUSEWIRE, server.access, share, sessions, seed, rate_per_s, recording=recording)
        for share in options.shares()
    ]
    tell("replaying a first time", 0, 0)
    with Worker(worker.serve, assignments[0]._replace(sessions=(0,))) as first:
        first.ask("open")
        first.tell("first_steps")
        first.answer(recording.timeout_s)
    with Fleet(worker.serve, [(assignment,) for assignment in assignments]) as fleet:
        fleet.ask("open")
        run = run_load(fleet, options, server.service, MemoryWatch(server.pid, fleet.pids), tell)
    wait_for_sessions_to_end(server, before)
    return LoadResult(Load(run, {}, None), None, None, _verification(run.reports), left_over(server, before))


def _verification(reports: Sequence[RunnerReport]) -> Verification | None:
    """Returns the comparison of the answers with the recorded ones; None if the recording holds no values."""
    differences = [f"session {report.session}, {each}" for report in reports for each in report.differences]
    compared = sum(report.compared for report in reports)
    return Verification(compared, tuple(differences)) if compared or differences else None


def _no_program(_xp: Library, _data: Data) -> Steps:
    raise AssertionError("a recording has no program")
