"""Waits for an answer of the loop thread, and refuses the request if the loop thread is too busy."""

from __future__ import annotations

from collections.abc import Awaitable
from http import HTTPStatus
from typing import TypeVar

from fusewire_server.inspect.loop_thread import LoopBusy
from fusewire_server.inspect.problems import Refused

_T = TypeVar("_T")


async def answered(answer: Awaitable[_T]) -> _T:
    """Returns the answer. Raises Refused with 503 if the loop thread does not give it in time."""
    try:
        return await answer
    except LoopBusy as reason:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "busy", str(reason)) from None
