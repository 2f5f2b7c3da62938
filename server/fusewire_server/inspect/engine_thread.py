"""Passes questions and orders of the inspection thread to the thread that owns the engine, or knows the engines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class EngineBusy(Exception):
    """Raised if the engine thread does not answer in time, because it is busy."""


def begun(question: Coroutine[Any, Any, _T], loop: asyncio.AbstractEventLoop) -> asyncio.Future[_T]:
    """Returns a future, for the running event loop, of what a coroutine returns on the thread that runs `loop`.

    A coroutine that has not begun when the future is cancelled does nothing later.
    """
    is_over = threading.Event()

    async def ask() -> _T:
        if is_over.is_set():
            question.close()
            raise asyncio.CancelledError
        return await question

    answer = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ask(), loop))
    answer.add_done_callback(lambda _answer: is_over.set())
    return answer


async def wait_for(answer: Awaitable[_T], deadline_s: float) -> _T:
    """Returns the answer. Raises EngineBusy at the deadline."""
    try:
        return await asyncio.wait_for(answer, deadline_s)
    except TimeoutError:
        raise EngineBusy(f"the server did not answer within {deadline_s:g} s, because it is busy") from None
