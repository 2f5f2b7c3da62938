"""Front ends that are killed at any time: their sessions go on over others with the same bytes, and nothing is left."""

from __future__ import annotations

import random
from pathlib import Path

import psutil
import pytest

from fusewire.testing import ServerProcess
from tests.bounds import Bounded
from tests.faults.left_over import LeftOver
from tests.faults.mixed_load import Connect, mixed_load
from tests.faults.server import Inspector, pause, serving, until, until_gone
from tests.front_end_processes import clients_of, front_ends_of
from tests.patience import HANGS_S

pytestmark = pytest.mark.faults

_KILLS, _FRONT_ENDS, _SESSIONS = 50, 3, 3
_MOST_S = 0.3  # how long sessions go on before the next kill
_SEED = 7
GONE_WITHIN_S = 5.0
GOES_ON_WITHIN_S = 30.0


def test_sessions_notice_nothing_of_killed_front_ends(
    token: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    """Each kill is of one that has clients, so that it breaks streams under load."""
    drawn, left_over = random.Random(_SEED), LeftOver()
    worst_s = 0.0
    more = ("--front-ends", str(_FRONT_ENDS))
    with serving(token_file, environment=left_over.environment, more=more) as server:
        inspector, connect = Inspector(server, inspecting), Connect(server.grpc, token, local=False)
        with mixed_load(*[connect] * _SESSIONS, seed=_SEED):
            pass
        until(lambda: inspector.held()[0] == 0)
        before = left_over.held()
        with mixed_load(*[connect] * _SESSIONS, seed=_SEED) as seen:
            for _ in range(_KILLS):
                pause(drawn.uniform(0.0, _MOST_S))
                victim = drawn.choice(_busy_ones(server))
                victim.kill()
                until_gone([victim], GONE_WITHIN_S)
                worst_s = max(worst_s, seen.wait_until_work(GOES_ON_WITHIN_S))
        until(lambda: inspector.held() == (0, 0))
        opened = inspector.ask("/v1/stats")["totals"]["sessions"]["opened"]
        until(lambda: len(front_ends_of(server.pid)) == _FRONT_ENDS, HANGS_S)
        left_over.assert_within(before, GONE_WITHIN_S)
    assert seen.failures == []
    assert opened == 2 * _SESSIONS, "no session was opened in the place of another"
    bounded("time until all sessions work again", worst_s, GOES_ON_WITHIN_S, "s")
    left_over.assert_nothing(GONE_WITHIN_S)


def _busy_ones(server: ServerProcess) -> list[psutil.Process]:
    """Waits until front ends have clients, and returns these front ends."""
    found: list[psutil.Process] = []

    def are_some() -> bool:
        found[:] = [each for each in front_ends_of(server.pid) if clients_of(each)]
        return bool(found)

    until(are_some)
    return found
