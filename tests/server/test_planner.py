"""The planner's side of the worker process: order, deadline, death and what becomes of requests."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fusewire_kernels.binary_cache import CACHE_VARIABLE
from fusewire_kernels.build import build_plan
from fusewire_kernels.compile import find_compiler
from fusewire_kernels.plan import ArenaColumn, Cost, Plan
from fusewire_kernels.plan_codec import encode_plan
from fusewire_protos.program import encode
from fusewire_server.planner import Planned, Planner, PlannerRefusal, PlannerSettings
from tests.server.parts import chain

DEADLINE_S = 20.0
PLAN = Plan((), (), (ArenaColumn(),), 64, (), Cost(1, 2), ("one",))

# Answers each request by what its bytes say, and keeps a record of them.
WORKER = """
import sys, msgpack
requests, answers = sys.stdin.buffer, sys.stdout.buffer
record, plan, *arguments = sys.argv[1:]
while len(head := requests.read(4)) == 4:
    raw = requests.read(int.from_bytes(head, "little"))
    with open(record, "ab") as file:
        file.write(raw + b"\\n")
    if raw == b"die":
        sys.exit(1)
    if raw == b"hang":
        requests.read()
    answer = msgpack.packb((bytes.fromhex(plan), ("a.so", *arguments), 3, 4, 1))
    if raw == b"refuse":
        answer = msgpack.packb(("does not compile",))
    if raw == b"babble":
        answer = b"\\xc1"
    answers.write(len(answer).to_bytes(4, "little") + answer)
    answers.flush()
"""


@asynccontextmanager
async def planner(tmp_path: Path, deadline_s: float = DEADLINE_S) -> AsyncIterator[Planner]:
    command = (sys.executable, "-c", WORKER, str(record(tmp_path)), encode_plan(PLAN).hex())
    one = Planner(PlannerSettings("c", "x86", deadline_s, 1 << 30, command))
    one.start()
    try:
        yield one
    finally:
        await one.stop()


def record(tmp_path: Path) -> Path:
    return tmp_path / "record"


def asked(tmp_path: Path) -> list[str]:
    return record(tmp_path).read_text().split()


async def refusal(answer: asyncio.Future[Planned]) -> str:
    with pytest.raises(PlannerRefusal) as caught:
        await asyncio.wait_for(answer, DEADLINE_S)
    return str(caught.value)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_a_program_comes_back_as_a_plan_with_its_files(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            planned = await asyncio.wait_for(one.request(b"first", is_urgent=False), DEADLINE_S)
            assert planned == Planned(PLAN, ("a.so", "c", "x86", str(1 << 30)), 3, 4, 1)
            await asyncio.wait_for(one.request(b"second", is_urgent=False), DEADLINE_S)
        assert asked(tmp_path) == ["first", "second"]

    run(test())


def test_urgent_requests_go_first_and_others_in_turn(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            usual = [one.request(raw, is_urgent=False) for raw in (b"one", b"two")]
            urgent = [one.request(raw, is_urgent=True) for raw in (b"three", b"four")]
            await asyncio.wait_for(asyncio.gather(*usual, *urgent), DEADLINE_S)
        assert asked(tmp_path) == ["three", "four", "one", "two"]

    run(test())


@pytest.mark.parametrize(("raw", "text"), [(b"refuse", "does not compile"), (b"die", "died"), (b"babble", "no plan")])
def test_a_request_without_a_plan_is_refused_and_the_next_is_served(tmp_path: Path, raw: bytes, text: str) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            assert text in await refusal(one.request(raw, is_urgent=False))
            assert (await asyncio.wait_for(one.request(b"next", is_urgent=False), DEADLINE_S)).plan == PLAN

    run(test())


def test_a_request_beyond_its_deadline_is_refused_with_the_setting_and_the_worker_replaced(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path, deadline_s=0.5) as one:
            assert "planner.deadline_s = 0.5" in await refusal(one.request(b"hang", is_urgent=False))
            one._settings = one._settings._replace(deadline_s=DEADLINE_S)
            assert (await asyncio.wait_for(one.request(b"next", is_urgent=False), DEADLINE_S)).plan == PLAN

    run(test())


def test_a_worker_that_cannot_be_started_refuses_every_request() -> None:
    async def test() -> None:
        one = Planner(PlannerSettings("c", "", DEADLINE_S, 0, ("/no/such/program",)))
        one.start()
        for raw in (b"first", b"second"):
            assert "FileNotFoundError" in await refusal(one.request(raw, is_urgent=False))
        await one.stop()

    run(test())


def test_a_request_that_nobody_awaits_any_more_does_no_harm(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            one.request(b"given-up", is_urgent=True).cancel()
            assert (await asyncio.wait_for(one.request(b"next", is_urgent=False), DEADLINE_S)).plan == PLAN

    run(test())


@pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
def test_the_worker_itself_plans_compiles_and_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))

    async def test() -> None:
        one = Planner(PlannerSettings("c", "", DEADLINE_S, 2 << 30))
        one.start()
        fresh, again = [await asyncio.wait_for(one.request(encode(chain()), is_urgent=False), DEADLINE_S) for _ in "ab"]
        assert fresh.plan == again.plan == build_plan(chain(), "c")
        assert (fresh.compiled, again.compiled) == (1, 0)
        assert fresh.binaries == again.binaries
        assert "undecodable_frame" in await refusal(one.request(b"no program", is_urgent=False))
        await one.stop()

    run(test())


def test_stopping_ends_a_worker_that_is_busy(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            one.request(b"hang", is_urgent=False)
            async with asyncio.timeout(DEADLINE_S):
                while one._process is None or not record(tmp_path).exists():  # noqa: ASYNC110 - another's file
                    await asyncio.sleep(0)
            process = one._process
        assert process.returncode is not None

    run(test())
