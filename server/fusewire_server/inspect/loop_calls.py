"""Calls functions on the loop thread for the inspection thread, and waits a bounded time for what they return."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_DEADLINE_S = 0.1


class LoopBusy(Exception):
    """Raised if the loop thread does not answer in time, because it is busy."""


class LoopCalls:
    """Passes functions to the loop thread by `call_soon`, which any thread may call."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], deadline_s: float = _DEADLINE_S) -> None:
        self._call_soon = call_soon
        self._deadline_s = deadline_s

    async def ask(self, function: Callable[[], T]) -> T:
        """Returns what the function returns on the loop thread. Raises LoopBusy if that takes longer than 100 ms.

        A function that has not begun by then is not called.
        """
        return await self.wait_for(self.begin(function))

    def begin(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Passes a function to the loop thread. Returns a future of its result for the running event loop."""
        result: concurrent.futures.Future[T] = concurrent.futures.Future()

        def call() -> None:
            if not result.set_running_or_notify_cancel():
                return
            try:
                result.set_result(function())
            except Exception as error:  # noqa: BLE001 - whoever asks gets the error, and the loop goes on
                result.set_exception(error)

        self._call_soon(call)
        return asyncio.wrap_future(result)

    async def wait_for(self, result: Awaitable[T]) -> T:
        """Returns the result. Raises LoopBusy at the deadline."""
        try:
            return await asyncio.wait_for(result, self._deadline_s)
        except TimeoutError:
            raise LoopBusy(f"the server did not answer within {self._deadline_s} s, because it is busy") from None
