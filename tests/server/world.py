"""An engine on a real loop and real threads, clients as their streams would drive them, and a device that watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.base import Block, Device, Staged
from fusewire_kernels.devices.null import NullDevice, NullPlan, NullReadback
from fusewire_kernels.plan.plan import InputColumn, OutputColumn, Plan
from fusewire_protos import frames
from fusewire_protos.frames import Entry, Free
from fusewire_protos.programs.codec import decode
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import Program
from fusewire_server.config import config
from fusewire_server.config.config import Config
from fusewire_server.device.orders import Lacks
from fusewire_server.engine.engine import Engine
from fusewire_server.planning.planner import Planned, Planner, PlannerSettings, PlanRequest
from fusewire_server.scheduling.turns import Owner
from fusewire_server.sessions.session import Session
from fusewire_server.sessions.tables.answers import Answer
from tests.patience import HANGS_S
from tests.server.parts import EXP, addition, chain, new, pair, segment, upload

DEADLINE_S = HANGS_S
UNHURRIED_NS = 10**12  # whatever else the machine does: a client's frame is applied when it has been sent
NEGATE, ADD, PAIR = 1, 2, 3
PROGRAMS: dict[int, Program] = {NEGATE: chain(), ADD: addition(), PAIR: pair()}
DATA = np.arange(4, dtype=np.float32).tobytes()


class WatchedDevice(NullDevice):
    """Knows which blocks are in use, and asserts that no launch is told of any other memory. A read takes it 1 ns."""

    def __init__(self, *, memory_bytes: int = 1 << 40) -> None:
        super().__init__(memory_bytes=memory_bytes)
        self.in_use: dict[int, Block] = {}
        self.tables: list[npt.NDArray[np.int64]] = []
        self.load_fault: Exception | None = None
        self.launch_fault: Exception | None = None
        self.arena_limit_bytes = 1 << 40

    def allocate(self, size_bytes: int) -> Block:
        block = super().allocate(size_bytes)
        assert self.in_use.setdefault(block.address, block) is block
        return block

    def release(self, block: Block) -> None:
        assert self.in_use.pop(block.address, None), "a block is given back twice"
        super().release(block)

    def load(self, plan: Plan, binaries: Sequence[str]) -> NullPlan:
        if self.load_fault is not None:
            raise self.load_fault
        return super().load(plan, binaries)

    def read(self, block: Block, size_bytes: int, first_byte: int = 0) -> NullReadback:
        self.clock_ns += 1
        return super().read(block, size_bytes, first_byte)

    def rows_that_fit(self, arena_bytes: int) -> int:
        return super().rows_that_fit(arena_bytes) if arena_bytes <= self.arena_limit_bytes else 0

    def launch_iteration(self, loaded: NullPlan, slots: npt.NDArray[np.int64]) -> None:
        if self.launch_fault is not None:
            raise self.launch_fault
        for row in slots:
            self.check(loaded, row)
        self.tables.append(slots.copy())
        super().launch_iteration(loaded, slots)

    def check(self, loaded: NullPlan, row: npt.NDArray[np.int64]) -> None:
        """Asserts that a row of a slot table names memory that is in use."""
        outputs = [int(row[index]) for index in columns(loaded.plan, OutputColumn)]
        inputs = [int(row[index]) for index in columns(loaded.plan, InputColumn)]
        assert len(set(outputs)) == len(outputs)
        assert all(address in self.in_use for address in (*inputs, *outputs))


class Clock:
    """Time that passes only when it is told, in place of the module `time`."""

    def __init__(self) -> None:
        self.now_ns = 0

    def perf_counter_ns(self) -> int:
        return self.now_ns

    def monotonic_ns(self) -> int:
        return self.now_ns


class InstantPlanner(Planner):
    """Plans in this process, without compiling. Answers at once; if it withholds answers, the test gives them."""

    def __init__(self, *, withholds: bool = False) -> None:
        super().__init__(PlannerSettings("c", "", DEADLINE_S, 0))
        self.requests: list[tuple[bytes, bool]] = []
        self.made: list[PlanRequest] = []
        self.withholds = withholds

    def request(self, raw: bytes, owner: Owner, *, is_urgent: bool, **how: Any) -> PlanRequest:
        self.requests.append((raw, is_urgent))
        request = super().request(raw, owner, is_urgent=is_urgent, **how)
        self.made.append(request)
        if not self.withholds:
            request.answer.set_result(planned(raw))
        return request


def planned(raw: bytes) -> Planned:
    """The answer to a request, with nothing compiled."""
    return Planned(build_plan(decode(raw, ProgramLimits()), "c"), (), 1, 1, 0)


def staged(device: Device) -> Staged:
    """DATA, gathered."""
    gathered = device.stage(len(DATA))
    gathered.memory[:] = DATA
    return gathered


def columns(plan: Plan, kind: type[InputColumn | OutputColumn]) -> list[int]:
    return [index for index, column in enumerate(plan.columns) if isinstance(column, kind)]


@dataclass
class Client:
    """One session as its stream would drive it; keeps what it is answered."""

    engine: Engine
    session: Session
    frame: int = 0
    answers: dict[int, list[Answer]] = field(default_factory=dict)

    def send(self, *entries: Entry, tensors: Sequence[bytes] = (DATA,), programs: bytes = b"") -> None:
        self.frame += 1
        self.engine.receive(
            self.session, self.frame, programs, frames.encode_entries(entries), tensors, time.monotonic_ns()
        )

    def collect(self) -> dict[int, list[Answer]]:
        """All answers so far, having acknowledged the new ones."""
        number, answers = self.session.answers.take(1 << 20)
        for answer in answers:
            self.answers.setdefault(answer.fetch, []).append(answer)
        if number:
            self.engine.acknowledge(self.session, number)
        return self.answers

    async def fetched(self, fetch: int) -> Answer:
        await until(lambda: fetch in self.collect())
        (answer,) = self.answers[fetch]
        return answer

    async def value(self, fetch: int) -> list[float]:
        answer = await self.fetched(fetch)
        assert answer.data is not None, answer.failure
        values: list[float] = np.frombuffer(answer.data, np.float32).tolist()
        return values

    async def failure(self, fetch: int) -> str:
        answer = await self.fetched(fetch)
        assert answer.failure is not None
        return answer.failure.case.name

    async def idle(self) -> None:
        await until(lambda: self.session.admitted == self.session.completed)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event, and zero is no sleep
            await asyncio.sleep(0)


@dataclass
class World:
    engine: Engine
    device: WatchedDevice
    broken: list[BaseException]

    def client(self, name: str = "a", tenant: str = "lab") -> Client:
        """A session that has numbered all programs and uploaded 10 and 11."""
        client = Client(self.engine, self.engine.open(tenant, name, "nowhere"))
        numbered = frames.encode_programs([new(number, program) for number, program in PROGRAMS.items()])
        client.send(upload(10), upload(11), programs=numbered)
        return client


@asynccontextmanager
async def world(
    device: WatchedDevice | None = None,
    planner: Planner | None = None,
    settings: config.Device | None = None,
    **limits: Any,
) -> AsyncIterator[World]:
    """An engine that runs; in the end all sessions end, and the device must hold nothing."""
    device = device or WatchedDevice()
    settings = settings or config.Device()
    engine = Engine(replace(Config(), device=settings, limits=config.Limits(**limits)), device, planner)
    broken: list[BaseException] = []
    engine.on_broken = broken.append
    engine._backlog.slice_ns = engine._backlog.turn_ns = UNHURRIED_NS
    engine.start()
    try:
        yield World(engine, device, broken)
    finally:
        for session in list(engine.sessions.values()):
            engine.end(session)
        await asyncio.to_thread(engine.stop, DEADLINE_S)
    if not broken:
        assert (device.live_bytes, device.in_use, engine.memory.live_bytes) == (0, {}, 0)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def in_world(**limits: Any) -> Callable[[Callable[[World], Coroutine[Any, Any, None]]], Callable[[], None]]:
    """Makes a test of a coroutine that takes a world with these limits, in which it runs."""

    def made(body: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        async def within() -> None:
            async with world(**limits) as here:
                await body(here)

        def test() -> None:
            run(within())

        test.__name__, test.__doc__ = body.__name__, body.__doc__
        return test

    return made


async def lack_exp(here: World, *clients: Client) -> None:
    """The device reports that rows of these clients wait for the kernel of an exponential."""
    here.engine._take_report(Lacks(frozenset([EXP]), frozenset([client.session for client in clients])))
    await until(lambda: here.engine.kernel_waits)


async def load(here: World, client: Client) -> None:
    """Brings the three programs to tier 1."""
    client.send(segment(NEGATE, 50, 10), segment(ADD, 60, 10, 11), segment(PAIR, 70, 10, 11))
    client.send(Free((50, 60, 70, 71, 72)))
    await until(lambda: all(entry.loaded is not None for entry in client.session.programs.values()))
    await client.idle()
    here.device.tables.clear()
    here.device.launched.clear()
