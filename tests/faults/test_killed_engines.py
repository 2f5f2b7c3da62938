"""Engine processes that are killed at any time: sessions of other devices go on, the others are told, nothing is left.

What an engine has started ends with it, and the next engine of the device serves the same clients.
"""

from __future__ import annotations

import random
import time
from bisect import bisect
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.bounds import Bounded
from tests.engine_processes import engine_of
from tests.faults.kernel_folders import Folders
from tests.faults.left_over import LeftOver
from tests.faults.mixed_load import Connect, mixed_load
from tests.faults.server import Inspector, pause, serving, until, until_gone

pytestmark = pytest.mark.faults

_KILLS = 50
_KEPT, _KILLED = 0, (1, 2, 3)  # devices
_MOST_S = 0.3  # how long a device is used before it is killed
_PAUSE_S = 0.1  # between rounds, so that engines have the processors to start
_SEED = 8
_TIDY_WITHIN_S = 120.0
GONE_WITHIN_S = 60.0  # a worker that has just been started notices it when it has imported what it needs
LOST_WITHIN_S = 10.0
GOES_ON_WITHIN_S = 60.0
_TOLD = "all values of the session are gone: connect again"


def test_sessions_of_other_devices_notice_nothing_and_the_others_are_told(
    token: str, inspecting: str, token_file: Path, tmp_path: Path, bounded: Bounded
) -> None:
    drawn, folders, left_over = random.Random(_SEED), Folders(tmp_path), LeftOver()
    kills: list[float] = []
    ends: list[Future[float]] = []
    worst_start_s = 0.0
    devices = ",".join(map(str, (_KEPT, *_KILLED)))
    environment = {**folders.environment, **left_over.environment}
    more = ("--devices", devices, "--front-ends", "2")
    with serving(token_file, environment=environment, more=more) as server:
        inspector = Inspector(server, inspecting)
        kept = [Connect(server.grpc, token, local=local, device=_KEPT, pause_s=_PAUSE_S) for local in (False, True)]
        lost = [
            Connect(server.grpc, token, may_be_lost=True, local=local, device=device, pause_s=_PAUSE_S)
            for device, local in zip(_KILLED, cycle((False, True)), strict=False)
        ]
        with mixed_load(*kept, *lost, seed=_SEED):
            pass
        until(lambda: inspector.held()[0] == 0)
        before = left_over.held()
        with mixed_load(*kept, *lost, seed=_SEED) as seen, ThreadPoolExecutor(len(_KILLED)) as threads:
            for device in islice(cycle(_KILLED), _KILLS):
                client = len(kept) + _KILLED.index(device)
                worst_start_s = max(worst_start_s, seen.wait_until_work(GOES_ON_WITHIN_S, [client]))
                pause(drawn.uniform(0.0, _MOST_S))
                engine = engine_of(server.pid, device)
                started = engine.children(recursive=True)
                kills.append(time.monotonic())
                engine.kill()
                ends.append(threads.submit(until_gone, [engine, *started], GONE_WITHIN_S))
            seen.wait_until_work(GOES_ON_WITHIN_S)
        until(lambda: inspector.held() == (0, 0))
        until(lambda: not folders.unfinished(), _TIDY_WITHIN_S)
        left_over.assert_within(before, GONE_WITHIN_S)
    until(folders.are_tidy, GONE_WITHIN_S)
    worst_end_s = max(end.result() for end in ends)
    losses_s = [loss.at_s - kills[bisect(kills, loss.at_s) - 1] for loss in seen.losses]
    untold = [loss.text for loss in seen.losses if _TOLD not in loss.text]
    assert seen.failures == []
    assert untold == []
    assert folders.damaged() == []
    assert len(seen.losses) >= _KILLS, "each kill has lost a session"
    bounded("time until SessionLost comes", max(losses_s), LOST_WITHIN_S, "s")
    bounded("time until sessions go on with the next engine", worst_start_s, GOES_ON_WITHIN_S, "s")
    bounded("time until all that an engine has started has ended", worst_end_s, GONE_WITHIN_S, "s")
    left_over.assert_nothing(GONE_WITHIN_S)
