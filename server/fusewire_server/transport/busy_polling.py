"""Keeps an event loop looking for news for a while after each answer, before it sleeps.

A client that has its answer often asks again at once. A processor that has gone to sleep meanwhile takes longer to wake
than a short step needs in all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

ON_MANY_CORES_S = 0.0002
_MANY_CORES = 4


def busy_poll_s_of(setting: float | None, cores: int) -> float:
    """Returns for how long both ends of a local call poll. Few cores have other work to do."""
    if setting is not None:
        return setting
    return ON_MANY_CORES_S if cores >= _MANY_CORES else 0.0


class BusyPolling:
    """Has the running event loop turn without a sleep until `period_s` after the last `extend`. Used by its thread."""

    def __init__(self, period_s: float, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._period_ns = round(period_s * 1e9)
        self._now_ns = now_ns
        self._until_ns = 0
        self._is_turning = False

    def extend(self) -> None:
        """Polls for the whole period from now on."""
        if not self._period_ns:
            return
        self._until_ns = self._now_ns() + self._period_ns
        if not self._is_turning:
            self._is_turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._is_turning = self._now_ns() < self._until_ns
        if self._is_turning:
            asyncio.get_running_loop().call_soon(self._turn)
