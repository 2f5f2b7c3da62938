"""A whole load test: server, sessions, peer, verification, and what the server still holds at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from time import monotonic_ns
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import psutil

from loadtests.load.left_over import LeftOver, held_by, left_over, wait_for_sessions_to_end
from loadtests.load.options import Options
from loadtests.load.run import Run, Tell, run_load
from loadtests.load.server import Access, ServerUnderLoad
from loadtests.load.verification import Verification, verify_alone
from loadtests.load.watch import MemoryWatch
from loadtests.load.worker import FUSEWIRE, Assignment, serve
from loadtests.measuring.errors import LoadFailed, WrongResult
from loadtests.measuring.workers import Fleet, Worker
from loadtests.scenarios import library
from loadtests.scenarios.scenario import Data

_VERIFYING_DEADLINE_S = 600.0
_RELATIVE, _ABSOLUTE = 2e-3, 2e-4  # tolerances between libraries, for float32 values after one step


class Load(NamedTuple):
    """A load on Fusewire."""

    run: Run
    sessions: Mapping[str, int]  # the number of each session, by the id that inspection shows
    harness_step_s: float  # processor time that the harness itself takes for a step


class LoadResult(NamedTuple):
    """Everything that a load test has found."""

    load: Load
    undisturbed: Load | None  # the same load without the scenario's disturber
    peer: Run | None
    verification: Verification | None
    left_over: LeftOver


def run_load_test(options: Options, server: ServerUnderLoad, tell: Tell) -> LoadResult:
    """Runs the load test. Raises NotMeasured or FusewireError if there is no result. No process is left then."""
    before = held_by(server)
    undisturbed = None if options.scenario.disturber is None else _run_sessions(options, server, tell)
    with _Disturber(options, server) as disturber:
        load = _run_sessions(options, server, tell)
        disturber.check()
    verification = _verify(options, server, load.run, tell) if options.verifies else None
    peer = None if options.peer is None else _run_peer(options, options.peer, tell)
    wait_for_sessions_to_end(server, before)
    return LoadResult(load, undisturbed, peer, verification, left_over(server, before))


def _run_sessions(options: Options, server: ServerUnderLoad, tell: Tell) -> Load:
    tell("connecting", 0, 0)
    with _fleet(options, FUSEWIRE, server.access) as fleet:
        ids = [session for part in fleet.ask("open") for session in part]
        _check_first_steps(options, fleet.ask("first_steps"), FUSEWIRE)
        harness_step_s = min(fleet.ask("harness_step_s"))
        run = run_load(fleet, options, server.service, MemoryWatch(server.pid, fleet.pids), tell)
        fleet.ask("close")
    numbers = chain.from_iterable(options.shares())
    return Load(run, dict(zip(ids, numbers, strict=True)), harness_step_s)


def _run_peer(options: Options, peer: str, tell: Tell) -> Run:
    """The same sessions in the same number of processes, with another library in the place of Fusewire."""
    tell(f"starting {peer}", 0, 0)
    with _fleet(options, peer, None) as fleet:
        fleet.ask("open")
        _check_first_steps(options, fleet.ask("first_steps"), peer)
        return run_load(fleet, options, None, MemoryWatch(None, fleet.pids), tell)


def _verify(options: Options, server: ServerUnderLoad, run: Run, tell: Tell) -> Verification:
    tell("running every session alone", 0, 0)
    with Worker(serve, _assignment(options, FUSEWIRE, server.access, sessions=())) as worker:
        return verify_alone(worker, run.reports, _VERIFYING_DEADLINE_S)


def _check_first_steps(options: Options, values: Sequence[Sequence[npt.NDArray[Any] | None]], name: str) -> None:
    """Raises WrongResult unless the first value that each session has read is close to NumPy's."""
    for session, value in zip(chain.from_iterable(options.shares()), chain.from_iterable(values), strict=True):
        xp = library.numpy()
        array = next(options.scenario.program(xp, Data(options.seed, session)))
        expected = None if array is None else xp.read(array)
        if not _are_close(value, expected):
            raise WrongResult(f"session {session} in {name}: the first value differs from NumPy's")


def _are_close(value: npt.NDArray[Any] | None, expected: npt.NDArray[Any] | None) -> bool:
    if value is None or expected is None:
        return value is None and expected is None
    return value.shape == expected.shape and np.allclose(value, expected, _RELATIVE, _ABSOLUTE)


def _fleet(options: Options, name: str, access: Access | None) -> Fleet:
    return Fleet(serve, [(_assignment(options, name, access, sessions=share),) for share in options.shares()])


def _assignment(options: Options, name: str, access: Access | None, *, sessions: tuple[int, ...]) -> Assignment:
    return Assignment(
        options.scenario.name,
        name,
        access,
        sessions,
        options.sessions,
        options.seed,
        options.rate_per_s,
        takes_digests=options.verifies and name == FUSEWIRE,
    )


class _Disturber:
    """The process of a scenario's disturber, if it has one. It is killed at the end, even if it has stopped itself."""

    def __init__(self, options: Options, server: ServerUnderLoad) -> None:
        self._worker: Worker | None = None
        if options.scenario.disturber is not None:
            assignment = _assignment(options, FUSEWIRE, server.access, sessions=(options.sessions,))
            self._worker = Worker(serve, assignment._replace(is_disturber=True, rate_per_s=None))

    def __enter__(self) -> Self:
        if self._worker is not None:
            self._worker.ask("open")
            self._worker.tell("begin", monotonic_ns())  # not answered by a disturber that stops its process at once
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.kill()

    def check(self) -> None:
        """Raises LoadFailed if the disturber has failed."""
        if self._worker is None or psutil.Process(self._worker.pid).status() == psutil.STATUS_STOPPED:
            return
        self._worker.answer()
        for session, reason in self._worker.ask("take").errors.items():
            raise LoadFailed(f"the disturber, session {session}: {reason}")
