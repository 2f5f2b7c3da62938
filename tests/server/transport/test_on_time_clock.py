"""The clock of uploads: it goes with the event loop, and stands still while the loop is late."""

from __future__ import annotations

import asyncio

import pytest

from fusewire_server.transport import on_time_clock
from fusewire_server.transport.on_time_clock import BEAT_S, OnTimeClock
from tests.server.world import run, until


def test_beats_on_time_count_in_full_and_a_late_beat_counts_once() -> None:
    clock = OnTimeClock()
    for at_s in (0.5 * BEAT_S, 1.5 * BEAT_S, 100.0):
        clock.pass_until(at_s)
    assert clock.now_s == pytest.approx(2.5 * BEAT_S)


def test_the_clock_goes_while_somebody_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_time_clock, "BEAT_S", 0.001)

    async def test() -> None:
        clock = OnTimeClock()
        with clock.going():
            with clock.going():
                await until(lambda: clock.now_s > 0)
            before_s = clock.now_s
            await until(lambda: clock.now_s > before_s)
        assert clock._timer is None
        stopped_s = clock.now_s
        await asyncio.sleep(0)
        assert clock.now_s == stopped_s

    run(test())
