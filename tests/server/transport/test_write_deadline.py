"""A bound on waiting that costs no timer a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fusewire_server.transport.write_deadline import LOOKS, WriteDeadline

_SHORT_S = 0.01
_LONG_S = 60.0


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, _LONG_S))


def test_who_waits_too_long_is_cancelled() -> None:
    async def test() -> None:
        patience = WriteDeadline(_SHORT_S)

        async def wait() -> None:
            with patience:
                await asyncio.Event().wait()

        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(wait())
        assert patience.is_over

    run(test())


def test_the_deadline_counts_looks_and_each_wait_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """While other work holds the event loop, there are no looks."""

    async def test() -> None:
        loop = asyncio.get_running_loop()
        looks: list[Callable[[], None]] = []
        monkeypatch.setattr(loop, "call_later", lambda _delay_s, look: looks.append(look))
        patience = WriteDeadline(_SHORT_S)
        for _ in range(20):
            with patience:
                for _ in range(LOOKS):
                    looks.pop()()
        assert not patience.is_over

    run(test())


def test_whoever_is_cancelled_by_another_is_not_blamed_for_waiting() -> None:
    async def test() -> None:
        patience = WriteDeadline(_LONG_S)
        entered = asyncio.Event()

        async def wait() -> None:
            with patience:
                entered.set()
                await asyncio.Event().wait()

        waiting = asyncio.create_task(wait())
        await entered.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        patience.end()
        assert waiting.cancelled()
        assert not patience.is_over

    run(test())
