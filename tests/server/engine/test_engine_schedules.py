"""Any schedule of what clients may send, against a model of what they must be answered; runs that do not end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_protos import frames
from fusewire_protos.frames import Abandon, Cancel, Fetch, Free, Segment
from fusewire_server.device import large_read, orders
from fusewire_server.device.large_read import LargeRead
from fusewire_server.device.unfused.iteration import Iteration
from tests.server.parts import chain, new, segment, upload, upload_beside
from tests.server.world import (
    ADD,
    NEGATE,
    PAIR,
    PROGRAMS,
    Client,
    InstantPlanner,
    WatchedDevice,
    World,
    load,
    run,
    staged,
    until,
    world,
)


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
        value = self.client.engine._uploads.claim(self.client.session, self.pending.pop(0)).result()
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


@pytest.mark.parametrize("is_in_pieces", [False, True], ids=["read whole", "read in pieces as large values are"])
@pytest.mark.parametrize("tier", [0, 1])
@settings(max_examples=60)
@given(steps=STEPS)
def test_every_schedule_answers_each_fetch_once_and_gives_all_memory_back(
    tier: int, is_in_pieces: bool, steps: list[tuple[str, int, int]]
) -> None:
    async def test() -> None:
        planner = InstantPlanner() if tier else None
        async with world(WatchedDevice(), planner, credit_segments=1000) as here:
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

    with pytest.MonkeyPatch.context() as patch:
        if is_in_pieces:
            patch.setattr(orders, "LARGE_BYTES", 8)
            patch.setattr(large_read, "PIECE_BYTES", 7)
        run(test())


def model(here: World, name: str) -> Model:
    known = {10: np.arange(4, dtype=np.float32), 11: np.arange(4, dtype=np.float32)}
    return Model(here.client(name), known=dict(known))


GO_ON = Iteration.go_on


@dataclass
class Gate:
    """Rows at tier 0 of the clients that are called "slow" do not end before it is open."""

    opened: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)

    def go_on(self, iteration: Iteration, until_ns: int) -> bool:
        if iteration._row.session.client == "slow" and not self.opened.is_set():
            self.reached.set()
            return False
        return GO_ON(iteration, until_ns)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    one = Gate()

    def go_on(iteration: Iteration, until_ns: int) -> bool:
        return one.go_on(iteration, until_ns)

    monkeypatch.setattr(Iteration, "go_on", go_on)
    monkeypatch.setattr("fusewire_server.device.unfused.run.LASTING_NS", 0)
    yield one
    one.opened.set()


def own_program(names: tuple[str, ...]) -> bytes:
    """Program 4, which nobody else has."""
    return frames.encode_programs([new(4, chain(names))])


@pytest.mark.parametrize("slow_clients", [1, 5])
def test_runs_at_tier_0_that_do_not_end_leave_others_their_first_programs(gate: Gate, slow_clients: int) -> None:
    async def test() -> None:
        async with world() as here:
            for index in range(slow_clients):
                slow, names = here.client("slow"), ("negative",) * (index + 2)
                slow.send(*(segment(4, 100 + 10 * each, 10) for each in range(3)), programs=own_program(names))
            for index in range(5):
                other = here.client("other")
                other.send(segment(4, 100, 10), Fetch(1, 107 + index), programs=own_program(("abs",) * (8 + index)))
                assert await other.value(1) == [0.0, 1.0, 2.0, 3.0]
            gate.opened.set()

    run(test())


def test_no_row_is_tied_to_one_that_waits_for_a_run_of_its_own_session(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusewire_server.device.unfused.run.LASTING_NS", 1 << 60)

    async def test() -> None:
        async with world() as here:
            slow, other = here.client("slow"), here.client("other")
            slow.send(segment(4, 100, 10), programs=own_program(("negative", "abs")))
            await until(gate.reached.is_set)
            here.engine.hold()
            slow.send(segment(NEGATE, 200, 10))
            other.send(segment(NEGATE, 200, 10))
            here.engine.unhold()
            await other.idle()
            gate.opened.set()
            await slow.idle()

    run(test())


def test_what_a_run_of_an_ended_session_holds_comes_back_once_without_its_end(gate: Gate) -> None:
    async def test() -> None:
        async with world() as here:
            slow, other = here.client("slow"), here.client("other")
            slow.send(segment(4, 100, 10), segment(4, 200, 10), Free((10,)), programs=own_program(("negative", "abs")))
            await until(gate.reached.is_set)
            here.engine.end(slow.session)
            await slow.idle()
            other.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            assert await other.value(1) == [-0.0, -1.0, -2.0, -3.0]
            await until(lambda: here.device.live_bytes == other.session.live_bytes)
            assert here.engine.memory.live_bytes == other.session.live_bytes

    run(test())


def test_a_session_whose_run_lasts_goes_on_once_it_has_ended(gate: Gate) -> None:
    async def test() -> None:
        async with world() as here:
            slow = here.client("slow")
            slow.send(segment(NEGATE, 100, 10))
            await until(gate.reached.is_set)
            slow.send(*(segment(NEGATE, 200 + index, 100) for index in range(5)), Fetch(1, 204))
            gate.opened.set()
            assert await slow.value(1) == [0.0, 1.0, 2.0, 3.0]
            await slow.idle()

    run(test())


def test_a_large_value_that_is_read_holds_up_its_own_session_only(monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on, go_on = threading.Event(), LargeRead.go_on

    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            reader, other = here.client("reader"), here.client("other")
            await load(here, reader)
            monkeypatch.setattr(orders, "LARGE_BYTES", 8)
            monkeypatch.setattr(LargeRead, "go_on", lambda copy: may_go_on.is_set() and go_on(copy))
            reader.send(Fetch(1, 10), *(segment(NEGATE, 100 + index, 10) for index in range(5)))
            for index in range(5):
                other.send(segment(NEGATE, 100 + index, 10))
                await other.idle()
            assert reader.session.admitted != reader.session.completed
            may_go_on.set()
            assert await reader.value(1) == [0.0, 1.0, 2.0, 3.0]
            await reader.idle()

    run(test())


def test_reading_a_large_value_is_charged_to_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(orders, "LARGE_BYTES", 8)
        async with world() as here:
            reader, other = here.client("reader"), here.client("other")
            for client in (reader, other):
                client.send(segment(NEGATE, 100, 10))
                await client.idle()
            before_ns = reader.session.device_ns
            reader.send(Fetch(1, 100), Fetch(2, 10), Abandon(2))
            await reader.fetched(1)
            assert reader.session.device_ns > before_ns
            await until(lambda: not reader.session.fetches)

    run(test())
