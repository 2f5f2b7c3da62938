"""The steps of an event loop: the longest is found with its name, and waiting is no part of any."""

from __future__ import annotations

import asyncio
import time

from tests.server.costs.steps import noted

_BURNT_NS = 20_000_000


def _burn() -> None:
    ends_ns = time.thread_time_ns() + _BURNT_NS
    while time.thread_time_ns() < ends_ns:
        pass


def test_the_longest_step_is_that_of_the_callback_which_takes_longest() -> None:
    async def run() -> None:
        asyncio.get_running_loop().call_soon(_burn)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with noted() as steps:
        asyncio.run(run())
    assert steps.longest.time_ns >= _BURNT_NS
    assert steps.longest.began == "_burn"
    assert steps.longest.ended.startswith("end of _burn")


def test_a_look_at_the_clock_ends_a_step() -> None:
    def look_between() -> None:
        _burn()
        steps.monotonic_ns()
        _burn()

    async def run() -> None:
        asyncio.get_running_loop().call_soon(look_between)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with noted() as steps:
        asyncio.run(run())
    assert steps.total_ns >= 2 * _BURNT_NS
    assert steps.longest.time_ns < steps.total_ns
    assert "look_between" in f"{steps.longest.began} {steps.longest.ended}"


def test_the_time_of_a_wait_is_no_part_of_a_step() -> None:
    async def run() -> None:
        waiting = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.05, waiting.set_result, None)
        await waiting

    began_ns = time.monotonic_ns()
    with noted() as steps:
        asyncio.run(run())
    assert steps.total_ns < time.monotonic_ns() - began_ns
