"""Begins each test when all runs of the suite that go side by side have come to it, so that their ops meet."""

from __future__ import annotations

import os
import threading
from multiprocessing.managers import BaseManager, BaseProxy
from typing import Any

import pytest

ADDRESS_VARIABLE = "FUSEWIRE_CONFORMANCE_COMPANY"
KEY = b"fusewire"  # both ends are on this machine, and of this run
_PATIENCE_S = 120.0  # a run that has ended waits for nobody, and nobody for it


class Barriers(BaseManager):
    """Shares one barrier between processes."""


class BarrierProxy(BaseProxy):
    """The barrier, in a process that does not own it."""

    _exposed_ = ("wait",)

    def wait(self, timeout_s: float) -> None:
        self._callmethod("wait", (timeout_s,))


Barriers.register("barrier", proxytype=BarrierProxy)
_joined: list[Any] = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """Waits for all; not at all once one of them has ended or was late."""
    if not _joined:
        host, _, port = os.environ[ADDRESS_VARIABLE].rpartition(":")
        barriers: Any = Barriers((host, int(port)), KEY)
        barriers.connect()
        _joined.append(barriers.barrier())
    try:
        _joined[0].wait(_PATIENCE_S)
    except threading.BrokenBarrierError:
        return
