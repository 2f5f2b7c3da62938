"""Servers that are killed at any time: clients learn it in time, and the next server goes on with the same cache."""

from __future__ import annotations

import random
import socket
import time
from bisect import bisect
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

import fusewire as fw
from fusewire.testing import ServerProcess
from tests.bounds import Bounded
from tests.faults.kernel_folders import Folders
from tests.faults.left_over import LeftOver
from tests.faults.mixed_load import OFTEN, Connect, Seen, do_round, mixed_load
from tests.faults.server import Inspector, children_of, pause, serving, until, until_gone
from tests.patience import HANGS_S

pytestmark = pytest.mark.faults

_KILLS = 50
# In a process, with front ends, and with engine processes: the arguments of the servers of each part of the kills.
_PARTS: Sequence[tuple[str, ...]] = (
    ("--front-ends", "0"),
    ("--front-ends", "0"),
    ("--front-ends", "2"),
    ("--front-ends", "2"),
    ("--front-ends", "2", "--devices", "0,1"),
)
_MOST_S = 1.5  # how long a server lives after all sessions work again
GONE_WITHIN_S = 60.0  # a worker that has just been started notices it when it has imported what it needs
LOST_WITHIN_S = 40.0  # reconnect_s, and the last attempt
GOES_ON_WITHIN_S = 30.0  # a client connects again every two seconds; then it has programs compiled
_TOLD = "all values of the session are gone: connect again"


@pytest.mark.parametrize("part", range(len(_PARTS)))
def test_clients_of_killed_servers_are_told_and_the_next_server_has_the_cache(
    part: int, token: str, inspecting: str, token_file: Path, tmp_path: Path, bounded: Bounded
) -> None:
    drawn, folders, kills = random.Random(part), Folders(tmp_path), list[float]()
    left_over = LeftOver()
    environment = {**folders.environment, **left_over.environment}
    with socket.create_server(("127.0.0.1", 0)) as bound:
        target = f"127.0.0.1:{bound.getsockname()[1]}"
    more = ("--grpc", target, *_PARTS[part])
    local, remote = [Connect(target, token, may_be_lost=True, local=local) for local in (True, False)]
    worst_end_s = worst_start_s = 0.0
    with ExitStack() as load:
        seen = Seen()
        for _ in range(_KILLS // len(_PARTS)):
            with serving(token_file, environment=environment, more=more) as server:
                if not kills:
                    seen = load.enter_context(mixed_load(local, remote, seed=part))
                worst_start_s = max(worst_start_s, seen.wait_until_work(GOES_ON_WITHIN_S))
                pause(drawn.uniform(0.0, _MOST_S))
                kills.append(time.monotonic())
                worst_end_s = max(worst_end_s, _kill(server))
            until(folders.are_tidy, GONE_WITHIN_S)
            left_over.assert_nothing(GONE_WITHIN_S)
            assert folders.damaged() == []
        with serving(token_file, environment=environment, more=more) as server:
            seen.wait_until_work(GOES_ON_WITHIN_S)
            load.close()
            _plan(server, token, inspecting)
            _kill(server)
    with serving(token_file, environment=environment, more=more) as server:
        _plan(server, token, inspecting)
        compiled = Inspector(server, inspecting).kernels_compiled()
    losses_s = [loss.at_s - kills[bisect(kills, loss.at_s) - 1] for loss in seen.losses if loss.at_s > kills[0]]
    untold = [loss.text for loss in seen.losses if _TOLD not in loss.text]
    assert seen.failures == []
    assert untold == []
    bounded("time until SessionLost comes", max(losses_s), LOST_WITHIN_S, "s")
    bounded("time until sessions go on with the next server", worst_start_s, GOES_ON_WITHIN_S, "s")
    bounded("time until all processes of a server have ended", worst_end_s, GONE_WITHIN_S, "s")
    bounded("kernels of known programs that the next server compiles", compiled, 0)


def test_the_next_server_removes_what_is_left_when_all_processes_are_killed_at_once(
    token: str, token_file: Path, tmp_path: Path
) -> None:
    """As when a container ends: nobody is left who could tidy up."""
    assert token
    folders = Folders(tmp_path)
    with serving(token_file, environment=folders.environment, more=("--front-ends", "0")) as server:
        process = psutil.Process(server.pid)
        until(lambda: bool(folders.of_workers()) and all(map(children_of, process.children())))
        left, all_processes = folders.of_workers(), [*reversed(process.children(recursive=True)), process]
        for each in all_processes:  # the guardians first
            each.kill()
        until_gone(all_processes, GONE_WITHIN_S)
    assert left <= folders.of_workers()
    with serving(token_file, environment=folders.environment):
        until(lambda: not left & folders.of_workers())


def _kill(server: ServerProcess) -> float:
    """Kills a server. Returns the seconds in which all ends that it has started."""
    process = psutil.Process(server.pid)
    started = process.children(recursive=True)
    process.kill()
    return until_gone([process, *started], GONE_WITHIN_S)


def _plan(server: ServerProcess, token: str, inspecting: str) -> None:
    """Works until the programs have their plans."""
    inspector = Inspector(server, inspecting)
    with Connect(server.grpc, token).session() as session:
        inspector.wait_for_plans(partial(_repeat, session), OFTEN)
    until(lambda: inspector.held()[0] == 0, HANGS_S)


def _repeat(session: fw.Session) -> None:
    do_round(session, np.random.default_rng(0))
