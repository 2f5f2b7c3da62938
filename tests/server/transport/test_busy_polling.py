"""An event loop polls for a while after each answer."""

from __future__ import annotations

import asyncio

from fusewire_server.transport.busy_polling import BusyPolling, busy_poll_s_of


class Clock:
    """A clock that goes on by a nanosecond a turn of the event loop that asks for the time."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += 1
        return self.now_ns


async def turns_without_sleep(clock: Clock) -> int:
    """Returns after how many nanoseconds the loop would sleep."""
    before = -1
    while clock.now_ns != before:
        before = clock.now_ns
        await asyncio.sleep(0)
    return clock.now_ns


def test_the_loop_turns_until_the_period_is_over() -> None:
    clock = Clock()

    async def run() -> int:
        BusyPolling(10e-9, clock).extend()
        return await turns_without_sleep(clock)

    assert asyncio.run(run()) == 11


def test_each_answer_begins_the_period_anew() -> None:
    clock = Clock()

    async def run() -> int:
        polling = BusyPolling(10e-9, clock)
        polling.extend()
        for _ in range(5):
            await asyncio.sleep(0)
        polling.extend()
        return await turns_without_sleep(clock)

    assert asyncio.run(run()) == 17


def test_without_a_period_the_loop_sleeps_at_once() -> None:
    clock = Clock()

    async def run() -> int:
        BusyPolling(0.0, clock).extend()
        return await turns_without_sleep(clock)

    assert asyncio.run(run()) == 0


def test_few_cores_do_not_poll_unless_it_is_set() -> None:
    assert busy_poll_s_of(None, 3) == 0.0
    assert busy_poll_s_of(None, 4) > 0.0
    assert busy_poll_s_of(0.0, 64) == 0.0
    assert busy_poll_s_of(0.001, 1) == 0.001
