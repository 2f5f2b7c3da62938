"""Waking up when asked to."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import pytest

from fusewire_server.host.timer_slack import SLACK_NS
from tests.patience import HANGS_S

_GET_TIMER_SLACK = 30
_DEADLINE_S = HANGS_S

PROGRAM = """
from threading import Thread
from fusewire_server.host.timer_slack import reduce_timer_slack
from tests.server.host.test_timer_slack import slack_ns
reduce_timer_slack()
thread = Thread(target=lambda: print(slack_ns()))
thread.start()
thread.join()
"""


def slack_ns() -> int:
    """How much later than asked for this thread may wake up."""
    return int(ctypes.CDLL(None).prctl(_GET_TIMER_SLACK, 0, 0, 0, 0))


@pytest.mark.skipif(platform.system() != "Linux", reason="only Linux can be asked")
def test_threads_started_afterwards_wake_up_promptly_too() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, timeout=_DEADLINE_S
    )
    assert int(done.stdout) == SLACK_NS
