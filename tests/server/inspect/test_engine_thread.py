"""Questions of the inspection thread to the engine thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from fusewire_server.inspect.engine_thread import EngineBusy, EngineThread
from tests.patience import HANGS_S


def _on_another_thread(function: Callable[[], None]) -> None:
    threading.Thread(target=function).start()


def test_an_answer_comes_from_the_engine_thread() -> None:
    asked = asyncio.run(EngineThread(_on_another_thread, 10.0).ask(threading.get_ident))
    assert asked != threading.get_ident()


def test_an_error_of_the_question_is_raised() -> None:
    def question() -> int:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        asyncio.run(EngineThread(_on_another_thread, 10.0).ask(question))


def test_a_busy_engine_thread_is_not_waited_for_and_its_late_answer_is_dropped() -> None:
    may_answer = threading.Event()

    async def test() -> None:
        engine_thread = EngineThread(_on_another_thread, 0.01)
        with pytest.raises(EngineBusy, match="busy"):
            await engine_thread.ask(lambda: may_answer.wait(HANGS_S))
        may_answer.set()
        assert await EngineThread(_on_another_thread, 10.0).ask(lambda: 1) == 1

    asyncio.run(test())


def test_a_question_whose_asker_has_given_up_is_not_asked_later() -> None:
    passed: list[Callable[[], None]] = []
    answered: list[int] = []

    async def test() -> None:
        with pytest.raises(EngineBusy, match="busy"):
            await EngineThread(passed.append, 0.01).ask(lambda: answered.append(1))

    asyncio.run(test())
    for question in passed:
        question()
    assert (len(passed), answered) == (1, [])
