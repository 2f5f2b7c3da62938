"""Runs a whole load test: the sessions, a disturber, a peer and the verification. Then finds what the server holds.

A disturber is one more session, which disturbs the measured sessions. A peer is another array library that runs the
same programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from time import monotonic_ns
from typing import NamedTuple

import psutil

from loadtests.load import worker
from loadtests.load.checks.differences import Array, difference_in_bits, difference_in_numbers
from loadtests.load.checks.verification import Verification, verify
from loadtests.load.options import Options
from loadtests.load.run import Run, Tell, run_load
from loadtests.load.target.left_over import LeftOver, held_by, left_over, wait_for_sessions_to_end
from loadtests.load.target.server import ServerUnderLoad
from loadtests.load.target.watch import MemoryWatch
from loadtests.load.vanishing import baseline, run_vanishing
from loadtests.load.worker import FUSEWIRE, Assignment
from loadtests.measuring.errors import LoadFailed, WrongResult
from loadtests.measuring.workers import Fleet, Worker
from loadtests.scenarios import library
from loadtests.scenarios.scenario import Data

_VERIFYING_DEADLINE_S = 600.0


class Load(NamedTuple):
    """What was measured while sessions of Fusewire put load on the server."""

    run: Run
    sessions: Mapping[str, int]  # id that inspection shows -> number of the session
    harness_step_s: float | None  # processor time that the load test's own code takes for a step; None: not measured


class LoadResult(NamedTuple):
    """Everything that a load test has found."""

    load: Load
    undisturbed: Load | None  # the same load without the scenario's disturber
    peer: Run | None
    verification: Verification | None
    left_over: LeftOver


class LoadTest:
    """A load test. `serve` is the function that the worker processes run. Tests pass functions with faults."""

    def __init__(
        self, options: Options, server: ServerUnderLoad, tell: Tell, serve: Callable[..., None] = worker.serve
    ) -> None:
        self._options = options
        self._server = server
        self._tell = tell
        self._serve = serve

    def run(self) -> LoadResult:
        """Runs the load test. Raises NotMeasured or FusewireError if there is no result.

        All worker processes have ended when this method returns or raises.
        """
        if self._options.scenario.sessions_vanish:
            return self._run_vanishing()
        before = held_by(self._server)
        undisturbed = None if self._options.scenario.disturber is None else self._run_sessions()
        with self._disturbed():
            load = self._run_sessions()
        verification = self._verify(load.run)
        peer = self._run_peer()
        wait_for_sessions_to_end(self._server, before)
        return LoadResult(load, undisturbed, peer, verification, left_over(self._server, before))

    def _run_sessions(self) -> Load:
        self._tell("connecting", 0, 0)
        with self._fleet(FUSEWIRE) as fleet:
            ids = list(chain.from_iterable(fleet.ask("open")))
            check_first_steps(self._options, fleet.ask("first_steps"), FUSEWIRE)
            harness_step_s = min(fleet.ask("harness_step_s"))
            watch = MemoryWatch(self._server.pid, fleet.pids)
            run = run_load(fleet, self._options, self._server.service, watch, self._tell)
            fleet.ask("close")
        return Load(run, dict(zip(ids, _numbers(self._options), strict=True)), harness_step_s)

    def _run_vanishing(self) -> LoadResult:
        def open_worker(sessions: tuple[int, ...]) -> Worker:
            return Worker(self._serve, self._assignment(FUSEWIRE, sessions))

        self._tell("waiting until first sessions are forgotten", 0, 0)
        before = baseline(self._options, self._server, open_worker)
        run = run_vanishing(self._options, self._server, open_worker, self._tell)
        verification = self._verify(run)
        self._tell("waiting until all sessions are forgotten", 0, 0)
        wait_for_sessions_to_end(self._server, before)
        return LoadResult(Load(run, {}, None), None, None, verification, left_over(self._server, before))

    def _run_peer(self) -> Run | None:
        """Runs the same sessions in the same number of processes, with another library instead of Fusewire."""
        peer = self._options.peer
        if peer is None:
            return None
        self._tell(f"starting {peer}", 0, 0)
        with self._fleet(peer) as fleet:
            fleet.ask("open")
            check_first_steps(self._options, fleet.ask("first_steps"), peer)
            return run_load(fleet, self._options, None, MemoryWatch(None, fleet.pids), self._tell)

    def _verify(self, run: Run) -> Verification | None:
        if not self._options.verifies:
            return None
        self._tell("running every session alone", 0, 0)
        with Worker(self._serve, self._assignment(FUSEWIRE, ())) as alone:
            return verify(alone, run.reports, _VERIFYING_DEADLINE_S)

    @contextmanager
    def _disturbed(self) -> Iterator[None]:
        """Runs the scenario's disturber, if it has one, within the block. Raises LoadFailed if the disturber failed."""
        if self._options.scenario.disturber is None:
            yield
            return
        assignment = self._assignment(FUSEWIRE, (self._options.sessions,))
        with Worker(self._serve, assignment._replace(is_disturber=True, rate_per_s=None)) as disturber:
            disturber.ask("open")
            disturber.tell("begin", monotonic_ns())
            yield
            if psutil.Process(disturber.pid).status() == psutil.STATUS_STOPPED:
                disturber.kill()  # a stopped process answers no command
                return
            disturber.answer()
            for report in disturber.ask("end"):
                if report.error is not None:
                    raise LoadFailed(f"the disturber: {report.error}")
            disturber.ask("close")

    def _fleet(self, name: str) -> Fleet:
        return Fleet(self._serve, [(self._assignment(name, share),) for share in self._options.shares()])

    def _assignment(self, name: str, sessions: tuple[int, ...]) -> Assignment:
        options = self._options
        return Assignment(
            options.scenario.name,
            name,
            self._server.access if name == FUSEWIRE else None,
            sessions,
            options.sessions,
            options.seed,
            options.rate_per_s,
            keeps_reads=options.verifies and name == FUSEWIRE,
        )


def check_first_steps(options: Options, values: Sequence[Sequence[Array | None]], name: str) -> None:
    """Raises WrongResult unless the first value that each session read is NumPy's, as close as the scenario is exact.

    `values` holds the values of each process's sessions; `name` is that of the library which computed them.
    """
    difference_of = difference_in_bits if options.scenario.is_exact else difference_in_numbers
    for session, value in zip(_numbers(options), chain.from_iterable(values), strict=True):
        xp = library.numpy()
        array = next(options.scenario.program(xp, Data(options.seed, session)))
        difference = difference_of(value, None if array is None else xp.read(array))
        if difference is not None:
            raise WrongResult(f"session {session} in {name}: the first value differs from NumPy's: {difference}")


def _numbers(options: Options) -> Iterator[int]:
    """Returns the numbers of all sessions, in the order of the processes."""
    return chain.from_iterable(options.shares())
