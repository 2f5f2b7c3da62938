"""The planner's side of the worker process: order, deadline, death and what becomes of requests."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE
from fusewire_kernels.compile.c_compiler import find_compiler
from fusewire_kernels.compile.cache_eviction import PART_PREFIX
from fusewire_kernels.compile.processes import usage_of_session
from fusewire_kernels.compile.watch import Bounds
from fusewire_kernels.plan.plan import ROWS_THAT_CHOOSE, ArenaColumn, Cost, Plan
from fusewire_kernels.plan.plan_codec import encode_plan
from fusewire_protos.programs.codec import encode
from fusewire_protos.programs.records import Records
from fusewire_server.planning.planner import NICENESS, Planned, Planner, PlannerRefusal, PlannerSettings
from tests.server.parts import chain, session
from tests.server.world import until
from tests.shell_programs import shell_program

DEADLINE_S = 20.0
OWNER, OTHER = session("a"), session("b")
PLAN = Plan((), (), (ArenaColumn(),), 64, (), Cost(1, 2), Records(why_launched="one"))

# Answers each request by what its bytes say, and keeps a record of them.
WORKER = """
import subprocess, sys, msgpack
requests, answers = sys.stdin.buffer, sys.stdout.buffer
record, plan, *arguments = sys.argv[1:]
while len(head := requests.read(4)) == 4:
    raw = requests.read(int.from_bytes(head, "little"))
    with open(record, "ab") as file:
        file.write(raw + b"\\n")
    if raw == b"die":
        sys.exit(1)
    while raw == b"spin":
        pass
    if raw == b"hang":
        child = subprocess.Popen(["sleep", "1000"])
        with open(record + ".child", "w") as file:
            file.write(str(child.pid))
        requests.read()
    answer = msgpack.packb((bytes.fromhex(plan), ("a.so", *arguments), 3, 4, 1))
    if raw == b"refuse":
        answer = msgpack.packb(("does not compile", False))
    if raw == b"babble":
        answer = b"\\xc1"
    answers.write(len(answer).to_bytes(4, "little") + answer)
    answers.flush()
"""


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine too, asyncio has been told of the end of each worker when its event loop ends."""
    monkeypatch.setattr("fusewire_server.host.process_group.GONE_WITHIN_S", DEADLINE_S)


@asynccontextmanager
async def planner(
    tmp_path: Path, deadline_s: float = DEADLINE_S, *, urgent_workers: int = 1, usual_workers: int = 1
) -> AsyncIterator[Planner]:
    one = Planner(_settings(tmp_path, deadline_s, urgent_workers=urgent_workers, usual_workers=usual_workers))
    one.start()
    try:
        yield one
    finally:
        await one.stop()


def _settings(
    tmp_path: Path, deadline_s: float = DEADLINE_S, *, urgent_workers: int = 1, usual_workers: int = 1
) -> PlannerSettings:
    command = (sys.executable, "-c", WORKER, str(record(tmp_path)), encode_plan(PLAN).hex())
    return PlannerSettings("c", "x86", deadline_s, 1 << 30, command, urgent_workers, usual_workers)


def record(tmp_path: Path) -> Path:
    return tmp_path / "record"


def asked(tmp_path: Path) -> list[str]:
    return record(tmp_path).read_text().split()


def is_running(process: str) -> bool:
    status = Path("/proc", process, "status")
    return status.exists() and "State:\tZ" not in status.read_text()


async def answer(one: Planner, raw: bytes, *, is_urgent: bool = False) -> Planned:
    return await asyncio.wait_for(one.request(raw, OWNER, is_urgent=is_urgent).answer, DEADLINE_S)


async def refusal(one: Planner, raw: bytes) -> PlannerRefusal:
    with pytest.raises(PlannerRefusal) as caught:
        await answer(one, raw)
    return caught.value


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_a_program_comes_back_as_a_plan_with_its_files(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            common = ("a.so", "c", "x86", str(1 << 30), str(DEADLINE_S))
            usual, urgent = (*common, str(ROWS_THAT_CHOOSE), str(NICENESS)), (*common, "1", "0")
            assert await answer(one, b"first") == Planned(PLAN, usual, 3, 4, 1)
            assert await answer(one, b"second", is_urgent=True) == Planned(PLAN, urgent, 3, 4, 1)
        assert asked(tmp_path) == ["first", "second"]

    run(test())


def test_sessions_take_turns_however_much_each_asks_for(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            requests = [one.request(raw, OWNER, is_urgent=False) for raw in (b"one", b"two", b"three")]
            requests.append(one.request(b"four", OTHER, is_urgent=False))
            await asyncio.wait_for(asyncio.gather(*(request.answer for request in requests)), DEADLINE_S)
        assert asked(tmp_path) == ["one", "four", "two", "three"]

    run(test())


def test_a_tenant_has_no_more_turns_for_more_sessions(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            many = [session(name, tenant="many") for name in "abc"]
            requests = [one.request(owner.session_id, owner, is_urgent=False) for owner in (*many, *many)]
            requests += [one.request(raw, session("x", tenant="few"), is_urgent=False) for raw in (b"x1", b"x2")]
            await asyncio.wait_for(asyncio.gather(*(request.answer for request in requests)), DEADLINE_S)
        assert asked(tmp_path) == ["a", "x1", "b", "x2", "c", "a", "b", "c"]

    run(test())


def test_an_urgent_request_does_not_wait_for_a_usual_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            usual = one.request(b"hang", OWNER, is_urgent=False)
            await until(record(tmp_path).exists)
            assert (await answer(one, b"next", is_urgent=True)).plan == PLAN
            assert not usual.answer.done()

    run(test())


@pytest.mark.parametrize("is_urgent", [True, False])
def test_several_workers_make_plans_of_one_kind_at_a_time(tmp_path: Path, is_urgent: bool) -> None:
    async def test() -> None:
        async with planner(tmp_path, urgent_workers=2, usual_workers=2) as one:
            hanging = one.request(b"hang", OWNER, is_urgent=is_urgent)
            await until(record(tmp_path).exists)
            for raw in (b"one", b"two"):
                assert (await answer(one, raw, is_urgent=is_urgent)).plan == PLAN
            assert not hanging.answer.done()

    run(test())


def test_a_request_of_several_sessions_is_served_by_one_of_the_workers(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path, urgent_workers=2) as one:
            hanging = one.request(b"hang", OWNER, is_urgent=True)
            one.join(hanging, OTHER)
            await until(lambda: record(tmp_path).exists() and asked(tmp_path))
            await answer(one, b"next", is_urgent=True)
            assert sorted(asked(tmp_path)) == ["hang", "next"]

    run(test())


@pytest.mark.parametrize("is_urgent", [True, False])
def test_who_joins_a_request_gives_it_a_turn(tmp_path: Path, is_urgent: bool) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            requests = [one.request(raw, OWNER, is_urgent=is_urgent) for raw in (b"one", b"two", b"three")]
            one.join(requests[2], OTHER)
            await asyncio.wait_for(asyncio.gather(*(request.answer for request in requests)), DEADLINE_S)
        assert asked(tmp_path) == ["one", "three", "two"]

    run(test())


def test_what_only_those_wanted_who_left_is_cancelled(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            mine, ours = [one.request(raw, OWNER, is_urgent=True) for raw in (b"mine", b"ours")]
            one.join(ours, OTHER)
            one.remove_owner(OWNER)
            assert mine.answer.cancelled()
            assert (await asyncio.wait_for(ours.answer, DEADLINE_S)).plan == PLAN
            assert one.waiting(OWNER, is_urgent=True) == 0
        assert asked(tmp_path) == ["ours"]

    run(test())


def test_what_is_no_longer_wanted_at_its_turn_is_cancelled(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            unwanted = one.request(b"unwanted", OWNER, is_urgent=False, is_wanted=lambda: False)
            await answer(one, b"next")
            assert unwanted.answer.cancelled()
        assert asked(tmp_path) == ["next"]

    run(test())


@pytest.mark.parametrize(
    ("raw", "text", "is_passing"),
    [(b"refuse", "does not compile", False), (b"die", "died", True), (b"babble", "no plan", True)],
)
def test_a_request_without_a_plan_is_refused_once_and_the_next_is_served(
    tmp_path: Path, raw: bytes, text: str, is_passing: bool
) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            refused = await refusal(one, raw)
            assert text in str(refused)
            assert refused.is_passing is is_passing
            assert (await answer(one, b"next")).plan == PLAN
        assert asked(tmp_path) == [raw.decode(), "next"]

    run(test())


def test_the_workers_are_started_before_anybody_asks(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            workers = (*one._urgent._workers, *one._usual._workers)
            await until(lambda: all(worker._process is not None for worker in workers))
            started = [worker._process for worker in workers]
            assert (await answer(one, b"next")).plan == PLAN
            assert [worker._process for worker in workers] == started

    run(test())


def test_whatever_a_broken_pipe_raises_the_worker_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            worker = one._usual._workers[0]

            async def ask(raw: bytes) -> Planned:
                raise RuntimeError("the handler is closed")

            with monkeypatch.context() as patched:
                patched.setattr(worker, "ask", ask)
                assert (await refusal(one, b"first")).is_passing
            assert (await answer(one, b"next")).plan == PLAN

    run(test())


needs_usage = pytest.mark.skipif(usage_of_session(os.getsid(0)) is None, reason="the system tells no usage")


@pytest.mark.parametrize(
    ("raw", "bounds", "text"),
    [
        pytest.param(
            b"spin", Bounds(0.1, setting="a.setting"), r"more than a\.setting = 0\.1 s of proc", marks=needs_usage
        ),
        pytest.param(b"hang", Bounds(idle_s=0.1), "neither ran nor waited for a processor for", marks=needs_usage),
        (b"hang", Bounds(wall_s=0.1), "did not end within"),
    ],
)
def test_a_worker_beyond_its_bounds_is_replaced_and_the_request_refused_for_a_while(
    tmp_path: Path, raw: bytes, bounds: Bounds, text: str
) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            usual = one._usual._bounds
            await answer(one, b"first")  # so that the process has started
            one._usual._bounds = bounds
            refused = await refusal(one, raw)
            assert re.search(text, str(refused))
            assert refused.is_passing
            one._usual._bounds = usual
            assert (await answer(one, b"next")).plan == PLAN

    run(test())


def test_a_planner_that_found_no_thread_for_its_workers_serves_later_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to Python 3.11, asyncio starts a thread for each process."""

    async def test() -> None:
        with monkeypatch.context() as crowded:
            no_thread = AsyncMock(side_effect=RuntimeError("can't start new thread"))
            crowded.setattr(asyncio, "create_subprocess_exec", no_thread)
            one = Planner(_settings(tmp_path))
            one.start()
            refused = await refusal(one, b"first")
        assert "can't start new thread" in str(refused)
        assert refused.is_passing
        assert (await answer(one, b"second")).plan == PLAN
        await one.stop()

    run(test())


def test_a_worker_that_cannot_be_started_refuses_every_request_only_as_long(tmp_path: Path) -> None:
    async def test() -> None:
        program = tmp_path / "worker"
        one = Planner(PlannerSettings("c", "", DEADLINE_S, 0, (str(program), encode_plan(PLAN).hex())))
        one.start()
        for raw in (b"first", b"second"):
            with pytest.raises(PlannerRefusal, match=r"cannot be started: .*No such file") as refused:
                await answer(one, raw)
            assert refused.value.is_passing
        shell_program(program, f"exec {sys.executable} -c '{WORKER}' {record(tmp_path)} \"$@\"")
        assert (await answer(one, b"third")).plan == PLAN
        await one.stop()

    run(test())


def test_a_request_that_nobody_awaits_any_more_does_no_harm(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            one.request(b"given-up", OWNER, is_urgent=False).answer.cancel()
            assert (await answer(one, b"next")).plan == PLAN

    run(test())


@pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
def test_the_worker_itself_plans_compiles_and_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))

    async def test() -> None:
        one = Planner(PlannerSettings("c", "", DEADLINE_S, 2 << 30))
        left_behind = tmp_path / f"{PART_PREFIX}of-one-that-was-killed.c"
        left_behind.touch()
        os.utime(left_behind, (0, 0))
        one.start()
        fresh, again = [await answer(one, encode(chain())) for _ in "ab"]
        assert fresh.plan == again.plan == build_plan(chain(), "c")
        assert (fresh.compiled, again.compiled) == (1, 0)
        assert fresh.binaries == again.binaries
        assert not left_behind.exists()
        assert "undecodable_frame" in str(await refusal(one, b"no program"))
        await one.stop()

    run(test())


def test_a_cache_that_cannot_be_used_refuses_a_program_only_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.write_text("a file where the folder should be", encoding="utf-8")
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))

    async def test() -> None:
        one = Planner(PlannerSettings("c", "", DEADLINE_S, 2 << 30))
        one.start()
        with pytest.raises(PlannerRefusal, match=CACHE_VARIABLE) as refused:
            await answer(one, encode(chain()))
        assert refused.value.is_passing
        cache.unlink()
        assert (await answer(one, encode(chain()))).compiled == 1
        await one.stop()

    run(test())


def test_a_worker_whose_server_was_killed_ends_quietly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    command = (*PlannerSettings("c", "", DEADLINE_S, 2 << 30).command, "c", "", str(2 << 30), str(DEADLINE_S), "1", "0")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.close()
        _, errors = worker.communicate((3).to_bytes(4, "little") + b"one", timeout=60)
    assert (worker.returncode, errors) == (0, b"")


def test_a_worker_whose_end_is_never_told_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    untold: list[asyncio.subprocess.Process] = []

    async def wait_for_ever(process: asyncio.subprocess.Process) -> int:
        untold.append(process)
        await asyncio.Event().wait()
        return 0

    async def test() -> None:
        async with planner(tmp_path) as one:
            with monkeypatch.context() as patched:
                patched.setattr("fusewire_server.host.process_group.GONE_WITHIN_S", 0.01)
                patched.setattr(asyncio.subprocess.Process, "wait", wait_for_ever)
                await refusal(one, b"die")
            assert (await answer(one, b"next")).plan == PLAN
            for process in untold:  # else the event loop may end first, and a later test hears that they still run
                await asyncio.wait_for(process.wait(), DEADLINE_S)

    run(test())


def test_stopping_ends_a_worker_that_is_busy(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            one.request(b"hang", OWNER, is_urgent=False)
            await until(record(tmp_path).exists)
            process = one._usual._workers[0]._process
            assert process is not None
        assert process.returncode is not None

    run(test())


def test_whatever_a_worker_has_started_ends_with_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with planner(tmp_path) as one:
            one.request(b"hang", OWNER, is_urgent=False)
            child = Path(f"{record(tmp_path)}.child")
            await until(lambda: child.exists() and child.read_text())
        await until(lambda: not is_running(child.read_text()))

    run(test())
