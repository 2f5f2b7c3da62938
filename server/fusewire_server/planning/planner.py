"""Turns programs into plans in worker processes, so that neither planning nor a compiler stalls the event loops.

Some workers make the plans that waiting rows need: plans of one-op programs for tier 0, which runs row by row. They run
at the server's own priority. Other workers make the plans of whole programs, because they take long and would delay the
waiting rows; they run at a low priority (`host.priority`). Each worker takes one request at a time. Tenants take turns,
and so do the sessions of a tenant. A request that several sessions make gets a turn of each of these sessions.

A worker bounds its own memory. If a request exceeds its bounds (`compile.watch`), the planner kills the worker process
and every compiler that the process has started, and starts a new process for the next request. A refusal tells whether
the machine is to blame. The planner never asks again: whoever needs the plan asks for it anew.

A request is 4 bytes of length, little-endian, then the bytes of the program, on the worker's standard input. An answer
is 4 bytes of length, little-endian, then msgpack, on its standard output.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import msgpack

from fusewire_kernels.compile.processes import usage_of_session
from fusewire_kernels.compile.watch import Bounds, Usage, Watch
from fusewire_kernels.plan.plan import ROWS_THAT_CHOOSE, Plan
from fusewire_kernels.plan.plan_codec import decode_plan
from fusewire_server.host.process_group import end_group
from fusewire_server.scheduling.turns import Owner, TenantTurns

LENGTH_BYTES = 4
_REFUSAL_FIELDS = 2
NICENESS = 10  # of usual workers; at a lower priority than this they would never run on a busy machine
# What a worker may take for a request, beside the processor time that `planner.deadline_s` bounds. A compiler may take
# a share of it, which the worker sees to.
_IDLE_S, _WALL_S = 12.5, 750.0
_LOOK_EVERY_S = 0.5


def worker_bounds(deadline_s: float) -> Bounds:
    """Returns what a worker may take for a request."""
    return Bounds(deadline_s, _IDLE_S, _WALL_S, setting="planner.deadline_s")


class PlannerRefusal(Exception):
    """Raised if a program gets no plan: planning or compiling failed, or exceeded its time or memory.

    `is_passing` tells that the machine is to blame, and that the same program may get a plan later.
    """

    def __init__(self, text: str, *, is_passing: bool = False) -> None:
        super().__init__(text)
        self.is_passing = is_passing


class Planned(NamedTuple):
    """A plan, the compiled files that hold its kernels, and the time that the worker took."""

    plan: Plan
    binaries: tuple[str, ...]
    planning_ns: int
    compiling_ns: int
    compiled: int  # number of kernels that no cache held


class PlannerSettings(NamedTuple):
    """The command, device and bounds of a worker.

    The worker gets the first four fields as arguments, then the most rows of its plans, and by how much it lowers its
    priority. `urgent_workers` is the number of workers for what rows wait for, and `usual_workers` of those for whole
    programs.
    """

    dialect: str
    architecture: str
    deadline_s: float
    memory_bytes: int
    command: tuple[str, ...] = (sys.executable, "-m", "fusewire_server.planning.worker")
    urgent_workers: int = 1
    usual_workers: int = 1


@dataclass(eq=False)
class PlanRequest:
    """A program that waits for its plan.

    `answer` raises PlannerRefusal if there will be no plan. `answer` is cancelled when no session wants the plan any
    more. `is_wanted` is called when the request's turn has come, and returns whether the plan is still wanted.
    """

    raw: bytes
    answer: asyncio.Future[Planned]
    is_urgent: bool
    is_wanted: Callable[[], bool]
    owners: set[Owner] = field(default_factory=set)


class Planner:
    """Sends requests to the workers and takes their answers. The engine thread owns this state."""

    def __init__(self, settings: PlannerSettings) -> None:
        self._urgent = _WorkerPool(settings, settings.urgent_workers, most_rows=1, niceness=0)
        self._usual = _WorkerPool(settings, settings.usual_workers, most_rows=ROWS_THAT_CHOOSE, niceness=NICENESS)

    def start(self) -> None:
        """Starts the worker processes, and begins to serve requests."""
        self._urgent.start()
        self._usual.start()

    async def stop(self) -> None:
        """Ends the workers and every compiler that they have started."""
        await asyncio.gather(self._urgent.stop(), self._usual.stop())

    def request(
        self,
        raw: bytes,
        owner: Owner,
        *,
        is_urgent: bool,
        may_wait: bool = False,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> PlanRequest:
        """Asks for the plan of a program on behalf of `owner`. Requests of different owners take turns.

        A request that may wait comes behind those of its tenant that may not.
        """
        request = PlanRequest(raw, asyncio.get_running_loop().create_future(), is_urgent, is_wanted)
        self._pool(is_urgent=is_urgent).add(request, owner, may_wait=may_wait)
        return request

    def join(self, request: PlanRequest, owner: Owner, *, may_wait: bool = False) -> None:
        """Adds `owner` to a request. The request then gets a turn of this owner too."""
        if owner not in request.owners and not request.answer.done():
            self._pool(is_urgent=request.is_urgent).add(request, owner, may_wait=may_wait)

    def waiting(self, owner: Owner, *, is_urgent: bool) -> int:
        """Returns the number of an owner's requests that have not had their turn."""
        return self._pool(is_urgent=is_urgent).turns.waiting(owner)

    def remove_owner(self, owner: Owner) -> None:
        """Withdraws an owner from all its requests. A waiting request without another owner is cancelled."""
        self._urgent.remove_owner(owner)
        self._usual.remove_owner(owner)

    def _pool(self, *, is_urgent: bool) -> _WorkerPool:
        return self._urgent if is_urgent else self._usual


class _WorkerPool:
    """The requests of some workers, and the task of each worker that serves them.

    Their plans are for launches of one to `most_rows` rows, or of any number if that is `ROWS_THAT_CHOOSE`.
    """

    def __init__(self, settings: PlannerSettings, workers: int, *, most_rows: int, niceness: int) -> None:
        self.turns: TenantTurns[PlanRequest] = TenantTurns(lambda request: request.answer.done())
        self._bounds = worker_bounds(settings.deadline_s)
        self._workers = [_Worker(settings, most_rows, niceness) for _ in range(workers)]
        self._wanted = asyncio.Event()
        self._served: set[PlanRequest] = set()  # the requests that the workers serve now
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._serve(worker), name="planner") for worker in self._workers]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*[worker.end() for worker in self._workers])

    def add(self, request: PlanRequest, owner: Owner, *, may_wait: bool) -> None:
        request.owners.add(owner)
        self.turns.add(owner, request, may_wait=may_wait)
        self._wanted.set()

    def remove_owner(self, owner: Owner) -> None:
        for request in self._served:
            request.owners.discard(owner)
        for request in self.turns.remove_owner(owner):
            request.owners.discard(owner)
            if not request.owners and request not in self._served:
                request.answer.cancel()

    async def _serve(self, worker: _Worker) -> None:
        await worker.start()
        while True:
            await self._wanted.wait()
            request = self.turns.take()
            if request is None:
                self._wanted.clear()
            elif request not in self._served:  # a request of several owners has a turn of each
                self._served.add(request)
                await self._attempt(worker, request)
                self._served.discard(request)

    async def _attempt(self, worker: _Worker, request: PlanRequest) -> None:
        if not request.is_wanted():
            request.answer.cancel()
            return
        try:
            planned = await self._answer(worker, request.raw)
        except PlannerRefusal as refusal:
            _refuse(request, refusal)
        except Exception as error:  # noqa: BLE001 - a process that dies raises many types here; it is replaced
            await worker.end()
            _refuse(request, PlannerRefusal(_text_of_fault(error), is_passing=True))
        else:
            if not request.answer.done():
                request.answer.set_result(planned)

    async def _answer(self, worker: _Worker, raw: bytes) -> Planned:
        """Returns the worker's answer. Raises what `ask` does, and _Overdue if the worker exceeds its bounds."""
        watch = Watch(self._bounds, time.monotonic())
        asking = asyncio.create_task(worker.ask(raw), name="asking a planner")
        try:
            while not (await asyncio.wait((asking,), timeout=_LOOK_EVERY_S))[0]:
                excess = watch.excess(time.monotonic(), await worker.usage())
                if excess:
                    raise _Overdue(excess)
            return await asking
        finally:
            asking.cancel()


class _Overdue(Exception):
    """Raised if a worker exceeds its bounds. The text says how, to follow "it"."""


def _text_of_fault(error: Exception) -> str:
    if isinstance(error, _Overdue):
        return f"planning was ended: it {error}"
    return f"the planner process died or gave an answer that is no plan: {type(error).__name__}"


class _Worker:
    """One worker process. The process and its compilers are one session of the system."""

    def __init__(self, settings: PlannerSettings, most_rows: int, niceness: int) -> None:
        self._settings = settings
        self._most_rows = most_rows
        self._niceness = niceness
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts the process, so that the first request need not wait half a second for it.

        If that fails, for whatever reason, each request tries again, and is told why.
        """
        with suppress(Exception):
            await self._running()

    async def ask(self, raw: bytes) -> Planned:
        """Returns the plan of a program.

        Raises PlannerRefusal if there is no plan. Any other exception means that the process is unusable.
        """
        process = await self._running()
        assert process.stdin is not None
        assert process.stdout is not None, "both streams are pipes"
        process.stdin.write(len(raw).to_bytes(LENGTH_BYTES, "little") + raw)
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "little")
        return _planned(await process.stdout.readexactly(length))

    async def usage(self) -> Usage | None:
        """Returns what the process and its compilers have used so far, or None if the system does not tell."""
        if self._process is None:
            return None
        return await asyncio.to_thread(usage_of_session, self._process.pid)

    async def end(self) -> None:
        """Kills the process. Its compilers end with it (`host.process_group`)."""
        process, self._process = self._process, None
        if process is not None:
            await end_group(process)

    async def _running(self) -> asyncio.subprocess.Process:
        """Returns the process. Raises PlannerRefusal if it cannot be started.

        Replaces a process that died between requests. Does not kill the dead process's group, because the system may
        have given the group's id to another process.
        """
        if self._process is None or self._process.returncode is not None:
            settings = self._settings
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *settings.command,
                    settings.dialect,
                    settings.architecture,
                    str(settings.memory_bytes),
                    str(settings.deadline_s),
                    str(self._most_rows),
                    str(self._niceness),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    start_new_session=True,
                )
            except (OSError, RuntimeError) as error:  # such as a lack of descriptors, memory or threads
                raise PlannerRefusal(f"the planner process cannot be started: {error}", is_passing=True) from None
        return self._process


def _planned(raw: bytes) -> Planned:
    answer = msgpack.unpackb(raw, use_list=False)
    if len(answer) == _REFUSAL_FIELDS:
        text, is_passing = answer
        raise PlannerRefusal(text, is_passing=is_passing)
    plan, *rest = answer
    return Planned(decode_plan(plan), *rest)


def _refuse(request: PlanRequest, refusal: PlannerRefusal) -> None:
    if not request.answer.done():
        request.answer.set_exception(refusal)
