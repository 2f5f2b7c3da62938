"""Killed workers, compilers and servers: what they started ends with them, no files stay, and the service goes on."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

import fusewire as fw
from fusewire.testing import ServerProcess
from tests.bounds import Bounded
from tests.faults import attackers
from tests.faults.bystander import join, running, watching
from tests.faults.kernel_folders import COMPILER_NAME, Folders
from tests.faults.left_over import LeftOver
from tests.faults.mixed_load import OFTEN, Connect, do_round, mixed_load
from tests.faults.server import DEADLINE_S, Inspector, children_of, pause, serving, until, until_gone
from tests.front_end_processes import is_front_end

pytestmark = pytest.mark.faults

GONE_WITHIN_S = 5.0
_TIDY_WITHIN_S = 120.0
_KILLS = 50
_SESSIONS = 2
_SEED = 1
_ROUNDS = 2  # of the session whose programs have plans in the end


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_compilers_end_with_a_killed_worker(
    token: str, attacking: str, inspecting: str, token_file: Path, folders: Folders
) -> None:
    with (
        serving(token_file, environment=folders.environment) as server,
        watching(server, token) as observed,
        running(attackers.send_new_programs, server.grpc, attacking),
    ):
        folders.takes_long.touch()
        worker = _wait_until_compiling(server)
        started, used = worker.children(recursive=True), folders.of_workers()
        worker.kill()
        until_gone(started, GONE_WITHIN_S)
        until(lambda: len(used & folders.of_workers()) < len(used), GONE_WITHIN_S)
        folders.takes_long.unlink()
        inspector = Inspector(server, inspecting)
        before = inspector.kernels_compiled()
        until(lambda: inspector.kernels_compiled() > before)
    assert observed.faults() == []
    until(lambda: not folders.of_workers() and not list(folders.temporary.iterdir()), GONE_WITHIN_S)


def test_compilers_end_with_a_killed_server(token: str, attacking: str, token_file: Path, folders: Folders) -> None:
    with (
        serving(token_file, environment=folders.environment) as server,
        running(attackers.send_new_programs, server.grpc, attacking),
    ):
        folders.takes_long.touch()
        _wait_until_compiling(server)
        process = psutil.Process(server.pid)
        # A worker has a guardian once it has begun; before that it would end when it reads the end of its input.
        until(lambda: all(map(children_of, _workers(server))))
        started = process.children(recursive=True)
        process.kill()
        until_gone(started, GONE_WITHIN_S)
    until(lambda: not folders.of_workers() and not list(folders.temporary.iterdir()), GONE_WITHIN_S)
    folders.takes_long.unlink()
    with serving(token_file, environment=folders.environment) as server:
        join(server.grpc, token)


def _workers(server: ServerProcess) -> list[psutil.Process]:
    return [each for each in psutil.Process(server.pid).children() if not is_front_end(each)]


def _compilers(server: ServerProcess) -> list[psutil.Process]:
    """Returns the processes of compilers: all that workers have started but their guardians."""
    own = psutil.Process(server.pid)
    return [each for each in own.children(recursive=True) if _name(each) not in {own.name(), ""}]


# What is killed, and the longest pause before.
_VICTIMS: Mapping[str, tuple[Callable[[ServerProcess], Sequence[psutil.Process]], float]] = {
    "worker": (_workers, 1.0),
    "compiler": (_compilers, 0.3),
}


@pytest.mark.parametrize("fault", _VICTIMS)
def test_sessions_notice_nothing_of_what_is_killed_while_it_plans(
    fault: str,
    token: str,
    inspecting: str,
    token_file: Path,
    folders: Folders,
    bounded: Bounded,
) -> None:
    """Kills one at a drawn time, 50 times, while sessions have new programs compiled."""
    drawn, left_over, worst_end_s = random.Random(_SEED), LeftOver(), 0.0
    victims, most_pause_s = _VICTIMS[fault]
    with serving(token_file, environment={**folders.environment, **left_over.environment}) as server:
        inspector, connect = Inspector(server, inspecting), Connect(server.grpc, token)
        with mixed_load(*[connect] * _SESSIONS, seed=_SEED):
            pass
        until(lambda: inspector.held()[0] == 0)
        until(lambda: all(map(children_of, _workers(server))))
        before = left_over.held()
        with connect.session() as session:
            with mixed_load(*[connect] * _SESSIONS, seed=_SEED) as seen:
                for kill in range(_KILLS):
                    pause(drawn.uniform(0.0, most_pause_s))
                    worst_end_s = max(worst_end_s, _kill_one(lambda: victims(server), drawn))
                    do_round(session, np.random.default_rng(kill % _ROUNDS))
            inspector.wait_for_plans(partial(_repeat, session), OFTEN)
        with suppress(AssertionError):  # what others had asked for is being compiled still
            until(lambda: not folders.unfinished(), _TIDY_WITHIN_S)
        left = folders.unfinished()
        until(lambda: inspector.held() == (0, 0))
        left_over.assert_within(before, _TIDY_WITHIN_S)
    bounded("time until what it has started has ended", worst_end_s, GONE_WITHIN_S, "s")
    assert seen.failures == []
    assert left == []
    assert folders.damaged() == []
    until(lambda: not folders.of_workers(), GONE_WITHIN_S)
    left_over.assert_nothing(GONE_WITHIN_S)


def _kill_one(find: Callable[[], Sequence[psutil.Process]], drawn: random.Random) -> float:
    """Kills one of the processes, as soon as there are some. Returns the seconds in which all that it started ends."""
    while True:
        found: Sequence[psutil.Process] = ()

        def are_some() -> bool:
            nonlocal found
            found = find()
            return bool(found)

        until(are_some)
        with suppress(psutil.NoSuchProcess):
            victim = drawn.choice(found)
            started = victim.children(recursive=True)
            victim.kill()
            return until_gone([victim, *started], GONE_WITHIN_S)


def _repeat(session: fw.Session) -> None:
    """Runs the programs again that were new between kills."""
    for number in range(_ROUNDS):
        do_round(session, np.random.default_rng(number))


def _wait_until_compiling(server: ServerProcess) -> psutil.Process:
    """Waits until a worker of the server has a compiler that takes long. Returns the worker."""
    found: list[psutil.Process] = []

    def is_compiling() -> bool:
        found[:] = [worker for worker in _workers(server) if COMPILER_NAME in _names(children_of(worker))]
        return bool(found)

    until(is_compiling, DEADLINE_S)
    return found[0]


def _names(processes: Iterable[psutil.Process]) -> list[str]:
    return [_name(process) for process in processes]


def _name(process: psutil.Process) -> str:
    """Returns the name of a process; nothing if it has ended."""
    with suppress(psutil.NoSuchProcess):
        return process.name() if process.is_running() else ""
    return ""
