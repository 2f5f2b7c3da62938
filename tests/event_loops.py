"""Runs asynchronous tests in each kind of event loop that clients and servers have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from tests.patience import HANGS_S

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def in_each_loop(request: pytest.FixtureRequest) -> Run:
    """Runs a test in a new event loop of this kind."""

    def run(test: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(test, HANGS_S))

    return run
