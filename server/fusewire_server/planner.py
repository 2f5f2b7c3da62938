"""Programs to plans, in a worker process, so that neither planning nor a compiler stalls the loops.

The worker takes one request at a time; requests for what a waiting row needs (one-op programs of tier 0) go before
fused plans. A request that outlives its deadline takes the worker with it: the process is killed and a new one
started, and the program stays at tier 0. The worker bounds its own memory.

Frames both ways on the worker's standard streams: 4 bytes of length, little-endian, then msgpack.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import msgpack

from fusewire_kernels.plan import Plan
from fusewire_kernels.plan_codec import decode_plan

LENGTH_BYTES = 4


class PlannerRefusal(Exception):
    """No plan came of a program: the compiler failed, took too long or too much memory."""


class Planned(NamedTuple):
    """A plan and the compiled files that hold its kernels, with what they took in the worker."""

    plan: Plan
    binaries: tuple[str, ...]
    planning_ns: int
    compiling_ns: int
    compiled: int  # kernels that no cache held


class PlannerSettings(NamedTuple):
    """What a worker is told of the device, and what bounds it. `command` starts one; the rest is appended to it."""

    dialect: str
    architecture: str
    deadline_s: float
    memory_bytes: int
    command: tuple[str, ...] = (sys.executable, "-m", "fusewire_server.planner_worker")


@dataclass(order=True)
class _Request:
    priority: int
    number: int
    raw: bytes = field(compare=False)
    answer: asyncio.Future[Planned] = field(compare=False)


class Planner:
    """The loop's side of the worker. Owned by the loop thread."""

    URGENT, USUAL = 0, 1

    def __init__(self, settings: PlannerSettings) -> None:
        self._settings = settings
        self._requests: list[_Request] = []
        self._numbers = itertools.count()
        self._wanted = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to serve requests; the worker is started with the first."""
        self._task = asyncio.create_task(self._serve(), name="planner")

    async def stop(self) -> None:
        """Ends the worker."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._end_worker()

    def request(self, raw: bytes, *, is_urgent: bool) -> asyncio.Future[Planned]:
        """Asks for the plan of a program. The future raises PlannerRefusal if there will be none."""
        answer: asyncio.Future[Planned] = asyncio.get_running_loop().create_future()
        priority = self.URGENT if is_urgent else self.USUAL
        heapq.heappush(self._requests, _Request(priority, next(self._numbers), raw, answer))
        self._wanted.set()
        return answer

    async def _serve(self) -> None:
        while True:
            await self._wanted.wait()
            if not self._requests:
                self._wanted.clear()
                continue
            await self._answer(heapq.heappop(self._requests))

    async def _answer(self, request: _Request) -> None:
        try:
            async with asyncio.timeout(self._settings.deadline_s):
                planned = await self._ask(request.raw)
        except TimeoutError:
            await self._end_worker()
            _refuse(request, f"planning took longer than planner.deadline_s = {self._settings.deadline_s}")
        except (asyncio.IncompleteReadError, OSError, ValueError, msgpack.UnpackException) as error:
            await self._end_worker()
            _refuse(request, f"the planner process died, or answers what is no plan: {type(error).__name__}")
        except PlannerRefusal as refusal:
            _refuse(request, str(refusal))
        else:
            if not request.answer.done():
                request.answer.set_result(planned)

    async def _ask(self, raw: bytes) -> Planned:
        process = await self._worker()
        assert process.stdin is not None
        assert process.stdout is not None, "both streams are pipes"
        process.stdin.write(len(raw).to_bytes(LENGTH_BYTES, "little") + raw)
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "little")
        return _planned(await process.stdout.readexactly(length))

    async def _worker(self) -> asyncio.subprocess.Process:
        if self._process is None:
            settings = self._settings
            self._process = await asyncio.create_subprocess_exec(
                *settings.command,
                settings.dialect,
                settings.architecture,
                str(settings.memory_bytes),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        return self._process

    async def _end_worker(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):  # it has died, and the loop does not know it yet
                process.kill()
            await process.wait()


def _planned(raw: bytes) -> Planned:
    answer = msgpack.unpackb(raw, use_list=False)
    if len(answer) == 1:
        raise PlannerRefusal(answer[0])
    plan, *rest = answer
    return Planned(decode_plan(plan), *rest)


def _refuse(request: _Request, text: str) -> None:
    if not request.answer.done():
        request.answer.set_exception(PlannerRefusal(text))
