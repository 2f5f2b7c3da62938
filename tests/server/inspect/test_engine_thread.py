"""Questions of the inspection thread to the engine thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from fusewire_server.inspect.engine_thread import EngineBusy, begun, wait_for
from tests.patience import HANGS_S


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that a thread of its own runs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(HANGS_S)
    loop.close()


def test_an_answer_comes_from_the_engine_thread(loop: asyncio.AbstractEventLoop) -> None:
    async def question() -> int:
        return threading.get_ident()

    async def test() -> int:
        return await begun(question(), loop)

    assert asyncio.run(test()) not in {0, threading.get_ident()}


def test_an_error_of_the_question_is_raised(loop: asyncio.AbstractEventLoop) -> None:
    async def question() -> int:
        raise ValueError("no such thing")

    async def test() -> None:
        await wait_for(begun(question(), loop), HANGS_S)

    with pytest.raises(ValueError, match="no such thing"):
        asyncio.run(test())


def test_a_busy_loop_thread_is_not_waited_for_and_a_question_that_nobody_awaits_is_not_asked_later(
    loop: asyncio.AbstractEventLoop,
) -> None:
    may_go_on, answered = threading.Event(), list[int]()

    async def question(number: int) -> int:
        answered.append(number)
        return number

    async def test() -> None:
        loop.call_soon_threadsafe(may_go_on.wait, HANGS_S)
        with pytest.raises(EngineBusy, match="busy"):
            await wait_for(begun(question(1), loop), 0.01)
        may_go_on.set()
        assert await wait_for(begun(question(2), loop), HANGS_S) == 2

    asyncio.run(test())
    assert answered == [2]
