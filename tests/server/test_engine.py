"""The engine on a real loop and real threads, with a device that computes at tier 0 and only looks on at tier 1."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.base import Block, Device, Staged
from fusewire_kernels.devices.null import NullDevice, NullPlan
from fusewire_kernels.plan import InputColumn, OutputColumn, Plan
from fusewire_protos import dtypes, frames
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES, Abandon, Cancel, Entry, Fetch, Free, Segment, Upload
from fusewire_protos.program import Program, ProgramLimits, decode
from fusewire_protos.shapes import Spec
from fusewire_server import config
from fusewire_server.config import Config
from fusewire_server.engine import Engine
from fusewire_server.planner import Planned, Planner, PlannerRefusal, PlannerSettings
from fusewire_server.programs import PlanState
from fusewire_server.session import Session, SessionState
from fusewire_server.work import Answer
from tests.server.parts import SIZE_BYTES, addition, chain, new, pair, segment, upload, upload_beside

DEADLINE_S = 10.0
NEGATE, ADD, PAIR = 1, 2, 3
PROGRAMS: dict[int, Program] = {NEGATE: chain(), ADD: addition(), PAIR: pair()}
DATA = np.arange(4, dtype=np.float32).tobytes()


class WatchedDevice(NullDevice):
    """Knows which blocks are in use, and asserts that no launch is told of any other memory."""

    def __init__(self, *, completes_by_itself: bool = True, memory_bytes: int = 1 << 40) -> None:
        super().__init__(completes_by_itself=completes_by_itself, memory_bytes=memory_bytes)
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
        assert self.in_use.pop(block.address) is block, "a block is given back twice"
        super().release(block)

    def load(self, plan: Plan, binaries: Sequence[str]) -> NullPlan:
        if self.load_fault is not None:
            raise self.load_fault
        return super().load(plan, binaries)

    def rows_that_fit(self, arena_bytes: int) -> int:
        return super().rows_that_fit(arena_bytes) if arena_bytes <= self.arena_limit_bytes else 0

    def launch(self, loaded: NullPlan, table: npt.NDArray[np.int64]) -> None:
        if self.launch_fault is not None:
            raise self.launch_fault
        for row in table:
            outputs = [int(row[index]) for index in columns(loaded.plan, OutputColumn)]
            inputs = [int(row[index]) for index in columns(loaded.plan, InputColumn)]
            assert len(set(outputs)) == len(outputs)
            assert all(address in self.in_use for address in (*inputs, *outputs))
        self.tables.append(table.copy())
        super().launch(loaded, table)


class InstantPlanner(Planner):
    """Plans in this process, without compiling; answers when told, or at once."""

    def __init__(self) -> None:
        super().__init__(PlannerSettings("c", "", DEADLINE_S, 0))
        self.requests: list[tuple[bytes, bool]] = []
        self.withheld: list[asyncio.Future[Planned]] | None = None

    def request(self, raw: bytes, *, is_urgent: bool) -> asyncio.Future[Planned]:
        self.requests.append((raw, is_urgent))
        answer: asyncio.Future[Planned] = asyncio.get_running_loop().create_future()
        if self.withheld is None:
            answer.set_result(Planned(build_plan(decode(raw, ProgramLimits()), "c"), (), 1, 1, 0))
        else:
            self.withheld.append(answer)
        return answer


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
        self.engine.receive(self.session, self.frame, programs, frames.encode_entries(entries), tensors)

    def collect(self) -> dict[int, list[Answer]]:
        """All answers so far, having acknowledged the new ones."""
        number, answers = self.session.take_answers(1 << 20)
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
    device: WatchedDevice | None = None, planner: Planner | None = None, **limits: Any
) -> AsyncIterator[World]:
    """An engine that runs; in the end all sessions end, and the device must hold nothing."""
    device = device or WatchedDevice()
    engine = Engine(replace(Config(), limits=config.Limits(**limits)), device, planner)
    broken: list[BaseException] = []
    engine.on_broken = broken.append
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


# ---- coalescing ----


def test_sessions_that_wait_at_the_same_program_are_rows_of_one_submission() -> None:
    async def test() -> None:
        async with world() as here:
            here.engine.hold()
            clients = [here.client(str(index)) for index in range(8)]
            for client in clients:
                client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            here.engine.unhold()
            values = [await client.value(1) for client in clients]
            assert values == [[-0.0, -1.0, -2.0, -3.0]] * 8
            assert dict(here.engine.counters.rows_per_submission) == {8: 1}

    run(test())


def test_at_tier_1_they_are_rows_of_one_launch() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            clients = [here.client(str(index)) for index in range(8)]
            await load(here, clients[0])
            here.engine.hold()
            for client in clients:
                client.send(segment(NEGATE, 100, 10))
            here.engine.unhold()
            for client in clients:
                await client.idle()
            assert [rows for _, rows in here.device.launched] == [8]

    run(test())


async def load(here: World, client: Client) -> None:
    """Brings the three programs to tier 1."""
    client.send(segment(NEGATE, 50, 10), segment(ADD, 60, 10, 11), segment(PAIR, 70, 10, 11))
    client.send(Free((50, 60, 70, 71, 72)))
    await until(lambda: all(entry.loaded is not None for entry in client.session.programs.values()))
    await client.idle()
    here.device.tables.clear()
    here.device.launched.clear()


def test_a_program_used_many_times_in_one_frame_is_planned_once() -> None:
    async def test() -> None:
        planner = InstantPlanner()
        planner.withheld = []
        async with world(planner=planner) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10), segment(NEGATE, 101, 10))
            client.send(segment(NEGATE, 102, 10))
            await client.idle()
            assert len(planner.requests) == 1

    run(test())


# ---- plans ----


def test_a_refused_plan_leaves_the_program_at_tier_0() -> None:
    async def test() -> None:
        planner = InstantPlanner()
        planner.withheld = []
        async with world(planner=planner) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10))
            planner.withheld[0].set_exception(PlannerRefusal("too long"))
            entry = client.session.programs[NEGATE]
            await until(lambda: entry.state is PlanState.REFUSED)
            client.send(segment(NEGATE, 101, 10), Fetch(1, 101))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]

    run(test())


@pytest.mark.parametrize("fault", ["load", "arena"])
def test_a_plan_that_the_device_does_not_take_leaves_the_program_at_tier_0(fault: str) -> None:
    async def test() -> None:
        device = WatchedDevice()
        if fault == "load":
            device.load_fault = OSError("no such library")
        else:
            device.arena_limit_bytes = -1
        async with world(device, planner=InstantPlanner()) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10))
            entry = client.session.programs[NEGATE]
            await until(lambda: entry.state is PlanState.REFUSED)
            client.send(segment(NEGATE, 101, 10), Fetch(1, 101))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert not here.broken

    run(test())


# ---- donation ----


@pytest.mark.parametrize(
    ("entries", "is_donated"),
    [
        ([segment(NEGATE, 100, 10, dying=(0,))], True),
        ([segment(NEGATE, 100, 10), Free((10,))], True),
        ([segment(NEGATE, 100, 10)], False),
        ([segment(NEGATE, 100, 10), segment(NEGATE, 101, 10, dying=(0,))], False),
    ],
)
def test_an_input_is_overwritten_only_if_nobody_can_read_it_again(entries: list[Entry], is_donated: bool) -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            here.engine.hold()
            client.send(*entries)
            here.engine.unhold()
            await client.idle()
            assert donates(here.device.tables[0], here.device.launched[0][0]) == is_donated

    run(test())


def donates(table: npt.NDArray[np.int64], plan: Plan) -> bool:
    (row,) = table
    return not set(row[columns(plan, InputColumn)]).isdisjoint(row[columns(plan, OutputColumn)])


def test_a_dying_input_that_is_used_twice_is_not_overwritten() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            client.send(segment(ADD, 100, 10, 10, dying=(0, 1)))
            await client.idle()
            assert not donates(here.device.tables[0], here.device.launched[0][0])

    run(test())


def test_donation_can_be_switched_off() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            here.engine.config = replace(here.engine.config, device=config.Device(donation=False))
            client = here.client()
            await load(here, client)
            client.send(segment(NEGATE, 100, 10, dying=(0,)))
            await client.idle()
            assert here.engine.memory.donations == 0

    run(test())


@pytest.mark.parametrize(("dying", "donations"), [((0,), 1), ((), 0)])
def test_op_by_op_a_dying_input_is_overwritten_too(dying: tuple[int, ...], donations: int) -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10, dying=dying), Fetch(1, 100))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert here.engine.memory.donations == donations

    run(test())


def test_op_by_op_every_input_is_read_before_any_is_overwritten() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(PAIR, 100, 10, 11, dying=(0, 1)), Fetch(1, 100), Fetch(2, 101), Fetch(3, 102))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert await client.value(2) == [-0.0, -1.0, -2.0, -3.0]
            assert await client.value(3) == [0.0, 2.0, 4.0, 6.0]
            assert here.engine.memory.donations == 2

    run(test())


def test_a_donor_is_given_back_when_its_row_finds_no_room() -> None:
    async def test() -> None:
        device = WatchedDevice()
        async with world(device, planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            device._memory_bytes = device.live_bytes
            client.send(segment(PAIR, 100, 10, 11, dying=(0, 1)), Fetch(1, 100))
            assert await client.failure(1) == "out_of_memory"

    run(test())


# ---- memory ----


def test_out_of_memory_fails_the_one_row_and_what_depends_on_it() -> None:
    async def test() -> None:
        device = WatchedDevice(memory_bytes=6 * SIZE_BYTES)
        async with world(device) as here:
            here.engine.hold()
            one, other = here.client("a"), here.client("b")
            one.send(segment(PAIR, 100, 10, 11), segment(NEGATE, 200, 100), Fetch(1, 100), Fetch(2, 200), Fetch(3, 10))
            other.send(
                segment(PAIR, 100, 10, 11), segment(NEGATE, 200, 100), Fetch(1, 100), Fetch(2, 200), Fetch(3, 10)
            )
            here.engine.unhold()
            await one.idle()
            await other.idle()
            for client in (one, other):
                assert await client.failure(1) == "out_of_memory"
                assert await client.failure(2) == "out_of_memory"
                assert await client.value(3) == [0.0, 1.0, 2.0, 3.0]

    run(test())


def test_a_row_that_fits_goes_on_beside_one_that_does_not() -> None:
    async def test() -> None:
        device = WatchedDevice(memory_bytes=7 * SIZE_BYTES)
        async with world(device) as here:
            here.engine.hold()
            clients = [here.client("a"), here.client("b")]
            for client in clients:
                client.send(segment(PAIR, 100, 10, 11), Fetch(1, 100))
            here.engine.unhold()
            outcomes = [(await client.fetched(1)).failure for client in clients]
            assert [failure is None for failure in outcomes].count(True) == 1

    run(test())


def test_an_upload_without_room_fails_and_gives_its_credit_back() -> None:
    async def test() -> None:
        async with world(WatchedDevice(memory_bytes=2 * SIZE_BYTES)) as here:
            client = here.client()
            client.send(upload(20), segment(NEGATE, 100, 20), Fetch(1, 20), Fetch(2, 100))
            assert await client.failure(1) == "out_of_memory"
            assert await client.failure(2) == "out_of_memory"
            await client.idle()

    run(test())


def test_a_failed_value_of_another_spec_may_be_an_input() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(Upload(20, Spec(dtypes.uint8, (3,)), 0))
            client.send(segment(PAIR, 100, 10, 20), segment(PAIR, 200, 10, 101), Fetch(1, 100), Fetch(2, 200))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert await client.value(2) == [-0.0, -1.0, -2.0, -3.0]

    run(test())


def test_what_a_protocol_failure_cuts_short_is_given_back_too() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            with pytest.raises(CaseError, match="unknown_program"):
                client.send(Free((10,)), segment(99, 100, 11))
            here.engine.end(client.session)
            await until(lambda: here.device.live_bytes == 0)

    run(test())


# ---- uploads beside the stream ----


def test_an_upload_may_come_before_its_declaration() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            claim = here.engine.uploads.claim(client.session, 20)
            client.send(upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 100))
            value = await claim
            assert value is not None
            here.engine.uploaded(client.session, value, staged(here.engine.device))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]

    run(test())


def test_a_second_call_for_an_upload_is_refused() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            first, second = (here.engine.uploads.claim(client.session, 20) for _ in range(2))
            client.send(upload_beside(20))
            assert await first is not None
            assert await second is None
            assert await here.engine.uploads.claim(client.session, 20) is None

    run(test())


def test_an_upload_that_nobody_brings_fails_in_time() -> None:
    async def test() -> None:
        async with world(upload_stall_s=0.01) as here:
            client = here.client()
            client.send(upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 100))
            assert await client.failure(1) == "upload_failed"
            await client.idle()

    run(test())


def test_a_call_that_waits_for_a_declaration_is_let_go_when_the_session_ends() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            claim = here.engine.uploads.claim(client.session, 20)
            here.engine.end(client.session)
            assert await claim is None

    run(test())


# ---- fetches ----


def test_large_answers_stay_on_the_device_until_the_client_has_taken_others() -> None:
    async def test() -> None:
        large = Spec(dtypes.uint8, (2 * INLINE_BYTES,))
        async with world(unread_bytes=large.size_bytes * 3 // 2) as here:
            client = here.client()
            client.send(
                Upload(20, large, 0), Fetch(1, 20), Fetch(2, 20), Free((20,)), tensors=[bytes(large.size_bytes)]
            )
            assert (await client.fetched(1)).is_beside
            assert 2 in client.session.fetches
            assert client.session.unread_bytes == large.size_bytes
            here.engine.downloaded(client.session, 1)
            assert (await client.fetched(2)).is_beside

    run(test())


def test_a_large_answer_that_is_abandoned_makes_room() -> None:
    async def test() -> None:
        large = Spec(dtypes.uint8, (2 * INLINE_BYTES,))
        async with world(unread_bytes=large.size_bytes) as here:
            client = here.client()
            client.send(
                Upload(20, large, 0), Fetch(1, 20), Fetch(2, 20), Fetch(3, 20), tensors=[bytes(large.size_bytes)]
            )
            await client.fetched(1)
            client.send(Abandon(1), Abandon(2))
            await client.fetched(3)
            assert list(client.session.untaken) == [3]

    run(test())


# ---- the lives of sessions ----


def test_cancel_lets_others_go_on() -> None:
    async def test() -> None:
        async with world() as here:
            here.engine.hold()
            one, other = here.client("a"), here.client("b")
            one.send(segment(NEGATE, 100, 10), Cancel(), Fetch(1, 100))
            other.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            here.engine.unhold()
            assert await one.failure(1) == "cancelled"
            assert await other.value(1) == [-0.0, -1.0, -2.0, -3.0]
            await one.idle()

    run(test())


def test_a_detached_session_ends_when_its_grace_has_passed() -> None:
    async def test() -> None:
        async with world(resume_grace_s=0.01) as here:
            client = here.client()
            here.engine.detach(client.session, client.session.epoch)
            assert client.session.state is SessionState.DETACHED
            await until(lambda: client.session.state is SessionState.CLOSED)
            await until(lambda: here.device.live_bytes == 0)
            with pytest.raises(CaseError, match="session_lost"):
                resume(here, client.session)

    run(test())


def test_a_resumed_session_lives_on_and_hears_what_it_missed() -> None:
    async def test() -> None:
        async with world(resume_grace_s=0.01) as here:
            client = here.client()
            here.engine.detach(client.session, client.session.epoch)
            client_fetch = Fetch(1, 10)
            assert resume(here, client.session) is client.session
            client.send(client_fetch)
            await until(lambda: client.session.answers)
            client.session.take_answers(1 << 20)
            here.engine.detach(client.session, client.session.epoch)
            resume(here, client.session)
            assert await client.value(1) == [0.0, 1.0, 2.0, 3.0]
            here.engine.detach(client.session, 1)
            assert client.session.state is SessionState.OPEN

    run(test())


def resume(here: World, session: Session, *, instance: bytes | None = None, tenant: str = "lab") -> Session:
    return here.engine.resume(session.session_id, instance or here.engine.instance, tenant, 0)


def test_a_session_is_resumed_by_its_own_tenant_at_its_own_server_only() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            here.engine.detach(client.session, client.session.epoch)
            for instance, tenant in ((b"another", "lab"), (None, "others")):
                with pytest.raises(CaseError, match="session_lost"):
                    resume(here, client.session, instance=instance, tenant=tenant)

    run(test())


def test_sessions_beyond_the_limit_and_while_draining_are_refused() -> None:
    async def test() -> None:
        async with world(sessions=1) as here:
            here.client()
            with pytest.raises(CaseError, match="too_many_sessions"):
                here.client()
            here.engine.is_draining = True
            with pytest.raises(CaseError, match="draining"):
                here.client()

    run(test())


def test_a_broken_device_is_told() -> None:
    async def test() -> None:
        device = WatchedDevice()
        async with world(device, planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            device.launch_fault = RuntimeError("an illegal address")
            client.send(segment(NEGATE, 100, 10))
            await until(lambda: here.broken)
            assert here.broken == [device.launch_fault]

    run(test())


def test_a_row_that_the_array_library_cannot_run_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("unexpected")

    async def test() -> None:
        async with world() as here:
            client = here.client()
            with monkeypatch.context() as patched:
                patched.setattr("fusewire_server.device_thread.run_op_by_op", fail)
                client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
                assert await client.failure(1) == "server_fault"
            client.send(segment(NEGATE, 200, 10), Fetch(2, 200))
            assert await client.value(2) == [-0.0, -1.0, -2.0, -3.0]
            assert not here.broken

    run(test())


# ---- tier 0 beside tier 1 ----


def test_a_row_at_tier_0_and_what_its_session_sends_next_hold_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def run_until_let_go(*_: object) -> Generator[None, None, None]:
        while not gate.is_set():
            yield

    async def test() -> None:
        planner = InstantPlanner()
        async with world(planner=planner) as here:
            slow, other = here.client("slow"), here.client("other")
            await load(here, slow)
            planner.withheld = []
            monkeypatch.setattr("fusewire_server.device_thread.run_op_by_op", run_until_let_go)
            unplanned = frames.encode_programs([new(4, chain(("negative", "negative")))])
            slow.send(
                segment(4, 100, 10), *(segment(NEGATE, 200 + index, 10) for index in range(5)), programs=unplanned
            )
            for fetch in range(1, 6):
                other.send(segment(NEGATE, 100 + fetch, 10), Fetch(fetch, 100 + fetch))
                assert (await other.fetched(fetch)).data is not None
            assert slow.session.completed.segments < slow.session.admitted.segments - 5
            gate.set()
            await slow.idle()

    try:
        run(test())
    finally:
        gate.set()


# ---- any schedule ----


@dataclass
class Model:
    """What a client knows: its handles with their values, None where a failure is as right as a value."""

    client: Client
    known: dict[int, npt.NDArray[np.float32] | None] = field(default_factory=dict)
    pending: list[int] = field(default_factory=list)  # uploads beside whose bytes have not been brought
    expected: dict[int, npt.NDArray[np.float32] | None] = field(default_factory=dict)  # by fetch
    next_handle: int = 100

    def step(self, kind: str, number: int) -> None:
        getattr(self, kind)(number)

    def mint(self, count: int = 1) -> int:
        self.next_handle += count
        return self.next_handle - count

    def pick(self, number: int) -> int:
        """One of the live handles, or now and then one that names nothing."""
        handles = [*self.known, 99_999]
        return handles[number % len(handles)]

    def upload(self, number: int) -> None:
        handle = self.mint()
        self.known[handle] = np.full(4, number, np.float32)
        self.client.send(upload(handle), tensors=[self.known[handle].tobytes()])  # type: ignore[union-attr]

    def upload_beside(self, number: int) -> None:
        handle = self.mint()
        self.known[handle] = None
        self.pending.append(handle)
        self.client.send(upload_beside(handle))

    def bring(self, number: int) -> None:
        """The bytes of an upload come, or its call breaks."""
        if not self.pending:
            return
        value = self.client.engine.uploads.claim(self.client.session, self.pending.pop(0)).result()
        assert value is not None
        if number % 3:
            self.client.engine.uploaded(self.client.session, value, staged(self.client.engine.device))
        else:
            self.client.engine.upload_failed(self.client.session, value, "broken off")

    def negate(self, number: int) -> None:
        self._segment(NEGATE, [self.pick(number)], number, lambda a: [-a])

    def add(self, number: int) -> None:
        self._segment(ADD, [self.pick(number), self.pick(number // 7)], number, lambda a, b: [a + b])

    def pair(self, number: int) -> None:
        self._segment(PAIR, [self.pick(number), self.pick(number // 7)], number, lambda a, b: [-a, -b, a + b])

    def _segment(self, program: int, inputs: list[int], number: int, compute: Callable[..., list[Any]]) -> None:
        values = [self.known.get(handle) for handle in inputs]
        base = self.mint(3)
        dying = (0,) if number % 2 else ()
        self.client.send(Segment(program, base, tuple(inputs), (), (), dying))
        known = all(value is not None for value in values)
        results = compute(*values) if known else [None] * len(PROGRAMS[program].live)
        self.known.update((base + index, result) for index, result in enumerate(results))
        if dying:
            self.known.pop(inputs[0], None)

    def free(self, number: int) -> None:
        handle = self.pick(number)
        self.known.pop(handle, None)
        self.client.send(Free((handle,)))

    def fetch(self, number: int) -> None:
        handle = self.pick(number)
        fetch = len(self.expected) + 1
        self.expected[fetch] = self.known.get(handle)
        self.client.send(Fetch(fetch, handle), Fetch(fetch, handle))

    def cancel(self, number: int) -> None:
        self.known = dict.fromkeys(self.known)
        self.expected = {
            fetch: value if fetch in self.client.answers else None for fetch, value in self.expected.items()
        }
        self.client.send(Cancel())

    def hold(self, number: int) -> None:
        self.client.engine.hold()

    def unhold(self, number: int) -> None:
        self.client.engine.unhold()

    def collect(self, number: int) -> None:
        self.client.collect()

    async def finish(self, *, has_values: bool) -> None:
        while self.pending:
            self.bring(1)
        await until(lambda: len(self.client.collect()) == len(self.expected))
        await self.client.idle()
        for fetch, expected in self.expected.items():
            (answer,) = self.client.answers[fetch]
            if expected is not None:
                assert answer.data is not None, answer.failure
                assert not has_values or np.frombuffer(answer.data, np.float32).tolist() == expected.tolist()


KINDS = ["upload", "upload_beside", "bring", "negate", "negate", "add", "pair", "free", "fetch", "fetch"]
KINDS += ["cancel", "hold", "unhold", "collect", "disconnect", "breathe"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2), st.integers(0, 1000)), max_size=80)


@pytest.mark.parametrize("tier", [0, 1])
@settings(max_examples=60)
@given(steps=STEPS)
def test_every_schedule_answers_each_fetch_once_and_gives_all_memory_back(
    tier: int, steps: list[tuple[str, int, int]]
) -> None:
    async def test() -> None:
        planner = InstantPlanner() if tier else None
        async with world(planner=planner, credit_segments=1000) as here:
            models = [model(here, name) for name in "abc"]
            for kind, index, number in steps:
                if kind == "breathe":
                    await asyncio.sleep(0)
                elif kind == "disconnect":
                    here.engine.end(models[index].client.session)
                    models[index] = model(here, "again")
                else:
                    models[index].step(kind, number)
            here.engine.unhold()
            for one in models:
                await one.finish(has_values=tier == 0)

    run(test())


def model(here: World, name: str) -> Model:
    known = {10: np.arange(4, dtype=np.float32), 11: np.arange(4, dtype=np.float32)}
    return Model(here.client(name), known=dict(known))
