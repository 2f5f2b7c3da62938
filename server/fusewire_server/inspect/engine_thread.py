"""Passes questions and orders of the inspection thread to the engine thread, which owns the engine."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")

_DEADLINE_S = 1.0


class EngineBusy(Exception):
    """Raised if the engine thread does not answer in time, because it is busy."""


class EngineThread:
    """The engine thread, as the inspection thread sees it. `call` passes a function to the engine thread."""

    def __init__(self, call: Callable[[Callable[[], None]], object], deadline_s: float = _DEADLINE_S) -> None:
        self._call = call
        self._deadline_s = deadline_s

    def tell(self, order: Callable[[], None]) -> None:
        """Has the engine thread call a function, and returns at once. May be called on any thread."""
        self._call(order)

    async def ask(self, question: Callable[[], _T]) -> _T:
        """Returns what the function returns on the engine thread. Raises EngineBusy, or what the function raises.

        A function that has not begun when EngineBusy is raised is not called later.
        """
        return await wait_for(self.begin(question), self._deadline_s)

    def begin(self, question: Callable[[], _T]) -> asyncio.Future[_T]:
        """Returns a future, for the running event loop, of what the function returns on the engine thread."""
        answer: concurrent.futures.Future[_T] = concurrent.futures.Future()

        def call() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(question())
            except Exception as error:  # noqa: BLE001 - the inspection thread raises it
                answer.set_exception(error)

        self._call(call)
        return asyncio.wrap_future(answer)


async def wait_for(answer: Awaitable[_T], deadline_s: float) -> _T:
    """Returns the answer. Raises EngineBusy at the deadline."""
    try:
        return await asyncio.wait_for(answer, deadline_s)
    except TimeoutError:
        raise EngineBusy(f"the server did not answer within {deadline_s:g} s, because it is busy") from None
