"""What a task sleeps on."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fusewire._alarm import Alarm
from fusewire._grpc_transport import new_event_loop


def run(act: object) -> None:
    """On the event loop that the client uses."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(asyncio.wait_for(act, 10))  # type: ignore[arg-type]


def test_another_thread_wakes_a_task_again_and_again() -> None:
    async def sleep() -> None:
        alarm = Alarm(asyncio.get_running_loop())
        for _ in range(3):
            thread = threading.Timer(0.001, alarm.ring)
            thread.start()
            await alarm
            thread.join(10)

    run(sleep())


def test_a_timer_once_set_is_kept_if_it_is_soon_enough() -> None:
    async def sleep() -> None:
        loop = asyncio.get_running_loop()
        alarm = Alarm(loop)
        alarm.ring_at(loop.time() + 100)
        alarm.ring_at(loop.time() + 0.001)
        first = alarm._timer
        alarm.ring_at(loop.time() + 50)
        assert alarm._timer is first
        await alarm
        assert alarm._timer is None

    run(sleep())


def test_a_ring_that_nobody_awaits_is_lost() -> None:
    async def sleep() -> None:
        loop = asyncio.get_running_loop()
        alarm = Alarm(loop)
        alarm.ring()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task = asyncio.ensure_future(_wait(alarm))
        await asyncio.sleep(0)
        assert not task.done()
        alarm.ring()
        await task

    run(sleep())


def test_a_cancelled_sleeper_wakes_at_once() -> None:
    async def sleep() -> None:
        task = asyncio.ensure_future(_wait(Alarm(asyncio.get_running_loop())))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(sleep())


def test_a_time_that_has_passed_rings_too_and_may_be_set_again() -> None:
    async def sleep() -> None:
        loop = asyncio.get_running_loop()
        alarm = Alarm(loop)
        alarm.ring_at(loop.time() - 1)
        alarm.ring_at(loop.time() + 100)
        await alarm

    run(sleep())


async def _wait(alarm: Alarm) -> None:
    await alarm
