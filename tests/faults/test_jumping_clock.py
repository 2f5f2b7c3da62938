"""A server whose wall clock jumps by a day and back: no session fails, ends or hangs, and no token expires."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import fusewire as fw
from fusewire_server.access.tokens import Scope, mint
from tests.bounds import Bounded
from tests.faults.jumping_clock import jumping_clock
from tests.faults.kernel_folders import COMPILER_NAME, Folders
from tests.faults.mixed_load import OFTEN, Connect, do_round, mixed_load
from tests.faults.server import Inspector, pause, serving, until
from tests.patience import HANGS_S

pytestmark = pytest.mark.faults

_WORK_S = 20.0
_ROUNDS_OF_ONE = 3  # after which its session is closed, and the next one opened
STALLS_S = 10.0
_DAYS_OF_TOKEN = 2  # more than a jump


@pytest.fixture
def clock(tmp_path: Path) -> dict[str, str]:
    compiler = shutil.which(COMPILER_NAME)
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler")
    return jumping_clock(tmp_path, compiler)


def test_the_clock_of_this_test_jumps_in_python(clock: dict[str, str]) -> None:
    looks = "import time\nseen = set()\nends = time.monotonic() + 3\n"
    looks += (
        "while time.monotonic() < ends: seen.add(round((time.time() - time.monotonic()) / 86400))\nprint(len(seen))"
    )
    printed = subprocess.run([sys.executable, "-c", looks], env=clock, check=True, capture_output=True, timeout=HANGS_S)
    assert int(printed.stdout) == 3


def test_sessions_notice_nothing_of_a_wall_clock_that_jumps(
    inspecting: str, token_file: Path, tmp_path: Path, clock: dict[str, str], bounded: Bounded
) -> None:
    """Sessions come, stay and go, values travel, and programs are compiled."""
    expires = datetime.now(UTC) + timedelta(days=_DAYS_OF_TOKEN)
    token = mint(token_file, tenant="quiet", scope=Scope.USE, expires=expires)
    folders = Folders(tmp_path)
    environment = {**folders.environment, **clock}
    with serving(token_file, environment=environment) as server:
        inspector, connect = Inspector(server, inspecting), Connect(server.grpc, token)
        with connect.session() as quiet:
            x = quiet.array(np.arange(10.0))
            with mixed_load(connect, connect._replace(rounds=_ROUNDS_OF_ONE)) as seen:
                pause(_WORK_S)
            assert float(x.sum()) == 45
            inspector.wait_for_plans(partial(_repeat, quiet), OFTEN)
            ended = inspector.ask("/v1/stats")["totals"]["sessions"]["ended"]
        until(lambda: inspector.held()[0] == 0)
    assert seen.failures == []
    bounded("time of a round", seen.worst_round_s, STALLS_S, "s")
    assert set(ended) <= {"goodbye"}


def _repeat(session: fw.Session) -> None:
    do_round(session, np.random.default_rng(0))
