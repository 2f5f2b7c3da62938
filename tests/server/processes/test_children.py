"""Child processes are kept running, are told and heard, and end when they are stopped. They are small programs here."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from fusewire_protos.errors import ConfigurationError, ServerFault
from fusewire_server.processes import children
from fusewire_server.processes.children import Child, Kind
from fusewire_server.processes.messages import Fault, encode
from tests.server.world import DEADLINE_S, run, until

pytestmark = pytest.mark.faults  # processes are started and killed


class Echo(NamedTuple):
    """A report of what was told."""

    text: str


# Reports each line that it is told, and ends with its standard input, or when it is told to.
ECHO = """
import json, os, sys
for line in sys.stdin:
    if line == "end\\n":
        raise SystemExit(3)
    print(json.dumps(["Echo", [os.environ.get("NAMED", "") + line.strip()]]), flush=True)
"""
STUBBORN = ECHO + "\nimport time; time.sleep(1000)\n"


def kind(program: str) -> Kind:
    return Kind("an example", (sys.executable, "-c", program), (Echo,))


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "START_AGAIN_S", 0.01)


@asynccontextmanager
async def started(
    program: str = ECHO, greeting: Callable[[], bytes] = lambda: b"hello\n", **options: Any
) -> AsyncIterator[tuple[Child, list[str]]]:
    heard: list[str] = []
    child = Child(kind(program), greeting, lambda report: heard.append(report.text), **options)
    try:
        async with asyncio.timeout(DEADLINE_S):
            await child.start()
            child.keep()
            yield child, heard
    finally:
        await children.stop([child], 0.5)
    assert child._process is None or child._process.returncode is not None


def test_it_is_greeted_told_and_heard() -> None:
    async def test() -> None:
        async with started(environment={"NAMED": "I: "}) as (child, heard):
            assert heard == ["I: hello"]
            child.tell(b"more\n")
            await until(lambda: heard == ["I: hello", "I: more"])

    run(test())


def test_another_one_takes_its_place_and_is_greeted_with_what_holds_then() -> None:
    ends: list[int] = []
    greetings = [b"first\n", b"second\n"]

    async def test() -> None:
        async with started(greeting=lambda: greetings.pop(0), on_end=lambda: ends.append(1)) as (child, heard):
            child.tell(b"end\n")
            await until(lambda: heard == ["first", "second"])
            assert ends == [1]
            child.tell(b"more\n")
            await until(lambda: heard[-1] == "more")

    run(test())


def test_one_that_reports_a_fault_is_refused_in_its_words() -> None:
    async def test() -> None:
        fault = encode(Fault("no such device")).decode()
        with pytest.raises(ConfigurationError, match=r"^no such device$"):
            async with started(f"print({fault!r}, end='')"):
                pass

    run(test())


def test_one_that_ends_before_it_reports_is_a_fault_of_the_server() -> None:
    async def test() -> None:
        with pytest.raises(ServerFault, match=r"^an example has ended with status 7 before it listened$"):
            async with started("raise SystemExit(7)"):
                pass

    run(test())


def test_one_that_does_not_end_by_itself_is_killed() -> None:
    async def test() -> None:
        async with started(STUBBORN) as (_, heard):
            assert heard == ["hello"]

    run(test())


def test_one_that_has_ended_is_told_nothing() -> None:
    async def test() -> None:
        child = Child(kind(ECHO), lambda: b"", lambda _: None)
        child.tell(b"more\n")
        await children.stop([child], 0.0)

    run(test())
