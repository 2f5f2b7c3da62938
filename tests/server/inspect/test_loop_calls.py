"""Calls on the loop thread: what they return, what they raise, and what happens while the loop thread is busy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from fusewire_server.inspect.loop_calls import LoopBusy, LoopCalls


class BusyLoop:
    """Keeps the functions that it is passed until it is told to call them."""

    def __init__(self) -> None:
        self.passed: list[Callable[[], None]] = []

    def go_on(self) -> None:
        for function in self.passed:
            function()


def test_an_answer_comes_back() -> None:
    async def test() -> int:
        calls = LoopCalls(asyncio.get_running_loop().call_soon_threadsafe, 10.0)
        return await calls.ask(lambda: 5)

    assert asyncio.run(test()) == 5


def test_an_error_comes_back_and_the_next_call_is_answered() -> None:
    async def test() -> int:
        calls = LoopCalls(asyncio.get_running_loop().call_soon_threadsafe, 10.0)
        with pytest.raises(ZeroDivisionError):
            await calls.ask(lambda: 1 // 0)
        return await calls.ask(lambda: 5)

    assert asyncio.run(test()) == 5


def test_a_function_for_which_nobody_waits_any_more_is_not_called() -> None:
    async def test() -> None:
        busy, called = BusyLoop(), list[int]()
        with pytest.raises(LoopBusy, match=r"within 0\.01 s"):
            await LoopCalls(busy.passed.append, 0.01).ask(lambda: called.append(1))
        busy.go_on()
        assert (len(busy.passed), called) == (1, [])

    asyncio.run(test())
