"""Clients that are killed at any time: others notice nothing, and all that the clients held is freed."""

from __future__ import annotations

import random
import time
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.bounds import Bounded
from tests.faults import mixed_load as module_of_victims
from tests.faults.kernel_folders import Folders
from tests.faults.mixed_load import Connect, do_round, mixed_load
from tests.faults.server import Inspector, pause, serving, until
from tests.patience import HANGS_S

pytestmark = pytest.mark.faults

_KILLS = 50
_LEAST_S, _MOST_S = 0.01, 2.0  # how long a client lives: as often a hundredth of a second as a second
_SESSIONS = 2
_GRACE_S = 1
FREED_WITHIN_S = 10.0
_SEED = 2


def test_others_notice_nothing_of_killed_clients_whose_values_are_freed(
    token: str, attacking: str, inspecting: str, token_file: Path, tmp_path: Path, bounded: Bounded
) -> None:
    drawn, folders = random.Random(_SEED), Folders(tmp_path)
    environment = {**folders.environment, "FUSEWIRE_LIMITS__RESUME_GRACE_S": str(_GRACE_S)}
    context = get_context("forkserver")  # which imports once what all of them need
    context.set_forkserver_preload([module_of_victims.__name__])
    with serving(token_file, environment=environment) as server:
        inspector, connect = Inspector(server, inspecting), Connect(server.grpc, token)
        with mixed_load(connect, seed=_SEED):
            pass
        until(lambda: inspector.held()[0] == 0)
        _, before_bytes = inspector.held()
        files = psutil.Process(server.pid).num_fds()
        with mixed_load(*[connect] * _SESSIONS, seed=_SEED) as seen:
            for number in range(_KILLS):
                begun = context.Event()
                arguments = (begun, server.grpc, attacking, number)
                victim = context.Process(target=_work_for_ever, args=arguments, daemon=True)
                victim.start()
                assert begun.wait(HANGS_S)
                pause(_LEAST_S * (_MOST_S / _LEAST_S) ** drawn.random())
                victim.kill()
                victim.join(HANGS_S)
            killed_s = time.monotonic()
            until(lambda: not inspector.sessions("attacker"), FREED_WITHIN_S)
            gone_s = time.monotonic() - killed_s
        until(lambda: inspector.held()[0] == 0)
        _, after_bytes = inspector.held()
        until(lambda: psutil.Process(server.pid).num_fds() <= files)
        killed = inspector.ask("/v1/stats")["totals"]["sessions"]["opened"] - _SESSIONS - 1
    assert seen.failures == []
    bounded("time until the sessions of killed clients have ended", gone_s, FREED_WITHIN_S, "s")
    bounded("bytes of the device that are left", after_bytes - before_bytes, 0, "B")
    assert killed >= _KILLS // 5, "most were killed before they had a session"


def _work_for_ever(begun: Event, target: str, token: str, seed: int) -> None:
    begun.set()
    drawn = np.random.default_rng((_SEED, seed))
    with Connect(target, token).session() as session:
        while True:
            do_round(session, drawn)
