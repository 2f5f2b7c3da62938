"""Passes questions and orders of the inspection thread to the loop thread, which owns the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

_T = TypeVar("_T")

_DEADLINE_S = 1.0


class LoopBusy(Exception):
    """Raised if the loop thread does not answer in time, because it is busy."""


class LoopThread:
    """The loop thread, as the inspection thread sees it. `call` passes a function to the loop thread."""

    def __init__(self, call: Callable[[Callable[[], None]], object], deadline_s: float = _DEADLINE_S) -> None:
        self._call = call
        self._deadline_s = deadline_s

    def tell(self, order: Callable[[], None]) -> None:
        """Has the loop thread call a function, and returns at once. May be called on any thread."""
        self._call(order)

    async def ask(self, question: Callable[[], _T]) -> _T:
        """Returns what the function returns on the loop thread. Raises LoopBusy, or what the function raises."""
        inspection = asyncio.get_running_loop()
        answer: asyncio.Future[_T] = inspection.create_future()

        def settle(set_outcome: Callable[[], None]) -> None:
            if not answer.done():
                set_outcome()

        def ask() -> None:
            try:
                told = question()
            except Exception as error:  # noqa: BLE001 - the inspection thread raises it
                failed = error
                outcome: Callable[[], None] = lambda: answer.set_exception(failed)  # noqa: E731
            else:
                outcome = lambda: answer.set_result(told)  # noqa: E731
            with suppress(RuntimeError):  # inspection has ended meanwhile
                inspection.call_soon_threadsafe(settle, outcome)

        self._call(ask)
        try:
            return await asyncio.wait_for(answer, self._deadline_s)
        except TimeoutError:
            raise LoopBusy(f"the server did not answer within {self._deadline_s} s, because it is busy") from None
