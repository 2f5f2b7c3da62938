"""Runs sessions of a load in a worker process, or the same programs in a peer, which is another array library.

The worker process obeys commands that the load test sends over a pipe.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from multiprocessing.connection import Connection
from time import monotonic, monotonic_ns, process_time_ns
from typing import NamedTuple

import numpy as np
import psutil

import fusewire as fw
from loadtests.load.checks.verification import first_difference
from loadtests.load.runners.pace import Pace
from loadtests.load.runners.reads import Array, Read, Reads
from loadtests.load.runners.replay_runner import Repeated, ReplayRunner
from loadtests.load.runners.runner import Runner, RunnerReport
from loadtests.load.runners.session_runner import SessionRunner
from loadtests.load.target.server import Access
from loadtests.load.windows.samples import Samples, Step, joined, of_steps
from loadtests.measuring.workers import answer_commands
from loadtests.scenarios import library
from loadtests.scenarios.catalogue import find_scenarios
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Program, Scenario, Steps

FUSEWIRE = "fusewire"
END_DEADLINE_S = 30.0
_CALIBRATING_STEPS = 20_000
_KEPT_BYTES = 256 << 20  # of values that a worker process keeps
_MOST_READS_BEFORE = 64


class Assignment(NamedTuple):
    """What a worker process runs: the sessions with these numbers, in Fusewire or in a peer library."""

    scenario: str
    library: str
    access: Access | None  # None in a peer library
    sessions: tuple[int, ...]
    all_sessions: int  # the number of sessions in all processes together
    seed: int
    rate_per_s: float | None = None
    keeps_reads: bool = False
    is_disturber: bool = False
    recording: Repeated | None = None  # replayed in place of the scenario's program


class Taken(NamedTuple):
    """The steps done since the last command `take`, and session -> error of each session that has failed."""

    samples: Samples
    errors: Mapping[int, str]


class Usage(NamedTuple):
    """The resources that a worker process has used, and the number of ops that its sessions have recorded."""

    processor_s: float
    resident_bytes: int
    ops: int


class Lives(NamedTuple):
    """The results of sessions that ran one step each.

    A step begins when its session begins to connect, and counts as recorded when the session is connected.
    """

    samples: Samples
    reports: tuple[RunnerReport, ...]
    usage: Usage


def serve(connection: Connection, assignment: Assignment) -> None:
    """Runs the worker process, which ends when the load test closes the pipe or is killed."""
    ignore_interrupts()
    worker = _WorkerSessions(assignment)
    commands: tuple[Callable[..., object], ...] = (
        worker.open,
        worker.live,
        worker.first_steps,
        worker.begin,
        worker.take,
        worker.usage,
        worker.end,
        worker.close,
        worker.verify,
        harness_step_s,
    )
    answer_commands(connection, {command.__name__: command for command in commands})
    # Open sessions send no goodbye here, because the load test was killed, or wants its sessions to vanish.
    os._exit(0)


def ignore_interrupts() -> None:
    """Ignores Ctrl-C, because the load test handles it and then ends its worker processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def usage(ops: int) -> Usage:
    """Returns what this process has used so far. `ops` is the number of recorded ops."""
    process = psutil.Process()
    times = process.cpu_times()
    return Usage(times.user + times.system, process.memory_info().rss, ops)


def harness_step_s() -> float:
    """Measures the processor time that the load test's own code takes for a step, with an empty program."""

    def idle_program() -> Steps:
        yield from repeat(None)

    pace = Pace(None, session=0, sessions=1)
    runner = SessionRunner(library.numpy(), idle_program(), pace, None)
    runner.first_step()
    began_ns = process_time_ns()
    runner.run_steps(0, _CALIBRATING_STEPS)
    taken = runner.take()
    return (process_time_ns() - began_ns) / 1e9 / len(taken)


class _WorkerSessions:
    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._sessions: list[fw.Session] = []
        self._runners: list[Runner] = []

    def open(self) -> tuple[str, ...]:
        """Connects all sessions. Returns their ids, as inspection shows them; in a peer library there are no ids."""
        for number in self._assignment.sessions:
            self._runners.append(self._open(number))
        return tuple(session.id for session in self._sessions)

    def live(self) -> Lives:
        """Connects the sessions one after another, and runs one step in each. The sessions stay open."""
        steps = []
        for number in self._assignment.sessions:
            began_ns = monotonic_ns()
            self._runners.append(self._open(number))
            connected_ns = monotonic_ns()
            self._runners[-1].first_step()
            steps.append(Step(number, began_ns, began_ns, began_ns, connected_ns, monotonic_ns()))
        return Lives(of_steps(steps), tuple(runner.report() for runner in self._runners), self.usage())

    def first_steps(self) -> list[Array | None]:
        """Runs one step in each session, one session after another. Returns the values that were read."""
        return [runner.first_step() for runner in self._runners]

    def begin(self, began_ns: int) -> None:
        """Starts the threads of all sessions, which run steps. The load began at `began_ns`."""
        for runner in self._runners:
            runner.start(began_ns)

    def take(self) -> Taken:
        """Returns the steps that all sessions have done since the last call."""
        errors = {runner.session: runner.error for runner in self._runners if runner.error is not None}
        return Taken(joined([runner.take() for runner in self._runners]), errors)

    def usage(self) -> Usage:
        replayed = sum(runner.ops for runner in self._runners if isinstance(runner, ReplayRunner))
        return usage(replayed + sum(session.stats.ops_recorded for session in self._sessions))

    def end(self) -> tuple[RunnerReport, ...]:
        """Waits until the steps under way have ended, and returns the reports. The sessions stay open."""
        for runner in self._runners:
            runner.stop()
        ends_at_s = monotonic() + END_DEADLINE_S
        for runner in self._runners:
            runner.wait_for_end(ends_at_s - monotonic())
        return tuple(runner.report() for runner in self._runners)

    def close(self) -> None:
        """Ends all sessions with a goodbye."""
        self._runners.clear()
        for session in self._sessions:
            session.close()

    def verify(self, session: int, reads: Sequence[Read]) -> str | None:
        """Runs the steps of one session again, in a new session and in NumPy. Returns the first difference in words."""
        given = self._assignment
        with self._connect() as opened:
            xp = library.fusewire(opened)
            _read_before(xp, given.seed, session)
            return first_difference(_scenario(given), reads, (given.seed, session), xp, library.numpy())

    def _open(self, number: int) -> Runner:
        given, pace = self._assignment, Pace(self._assignment.rate_per_s, number, self._assignment.all_sessions)
        if given.recording is not None:
            assert given.access is not None
            return ReplayRunner(given.recording, given.access, pace, given.seed + number)
        if given.library == FUSEWIRE:
            self._sessions.append(self._connect())
            xp = library.fusewire(self._sessions[-1])
        else:
            xp = library.PEERS[given.library]()
        steps = _program_of(given)(xp, Data(given.seed, number))
        reads = Reads(_KEPT_BYTES // len(given.sessions)) if given.keeps_reads else None
        return SessionRunner(xp, steps, pace, reads)

    def _connect(self) -> fw.Session:
        assert self._assignment.access is not None
        # A pause would be in the times that are measured, so a lost connection ends the session, and is reported.
        return fw.connect(**self._assignment.access._asdict(), reconnect_s=0)


def _read_before(xp: Library, seed: int, session: int) -> None:
    """Reads a random number of values. So what is wrong in every n-th answer of a session is wrong in other steps."""
    for _ in range(np.random.default_rng((seed, session)).integers(1, _MOST_READS_BEFORE)):
        xp.read(xp.asarray(np.zeros(1, np.float32)))


def _scenario(assignment: Assignment) -> Scenario:
    return find_scenarios()[assignment.scenario]


def _program_of(assignment: Assignment) -> Program:
    scenario = _scenario(assignment)
    if not assignment.is_disturber:
        return scenario.program
    assert scenario.disturber is not None
    return scenario.disturber
