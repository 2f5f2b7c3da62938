"""A session that holds very many values has some packed: they take less memory, and are as they were."""

from __future__ import annotations

import pytest

from fusewire_protos.frames import Fetch, Free, Segment
from fusewire_server.engine import packing
from tests.segments import loop_of
from tests.server.parts import SIZE_BYTES, segment
from tests.server.world import ADD, NEGATE, Client, InstantPlanner, WatchedDevice, run, until, world

KEPT, LOOPS, FEW = 1000, 4, 100


@pytest.fixture(autouse=True)
def _few_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_OBJECTS", FEW)


def kept(number: int) -> int:
    """The first handle of a loop's results."""
    return 10_000 * (number + 1)


async def fill(client: Client) -> None:
    for number in range(LOOPS):
        first = Segment(NEGATE, kept(number), (10,), (), (), ())
        client.send(loop_of(first, KEPT, 1, (KEPT,)), Fetch(number, kept(number)))
        await client.fetched(number)
    await until(lambda: client.session.packed.count >= LOOPS * KEPT - FEW)


def test_packed_values_are_read_freed_and_given_back_with_their_session() -> None:
    async def test() -> None:
        device = WatchedDevice()
        async with world(device, planner=InstantPlanner()) as here:
            client = here.client("a")
            session = client.session
            await fill(client)
            assert session.values_held == LOOPS * KEPT + 2
            client.send(segment(ADD, 90, kept(1) + 5, kept(2) + 7), Fetch(100, 90), Fetch(101, kept(3) + 1))
            await client.fetched(100)
            await client.fetched(101)
            live_bytes = session.live_bytes
            client.send(Free(tuple(range(kept(0), kept(0) + KEPT))))
            await until(lambda: session.live_bytes == live_bytes - KEPT * SIZE_BYTES)
            here.engine.end(session)
            await until(lambda: not device.in_use)

    run(test())


def test_packing_goes_in_steps_and_counts_as_time_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_PACKED_AT_ONCE", 10)

    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            client, seen = here.client("a"), set()
            first = Segment(NEGATE, kept(0), (10,), (), (), ())
            client.send(loop_of(first, KEPT, 1, (KEPT,)))

            def is_packed() -> bool:
                seen.add(client.session.packed.count)
                return client.session.packed.count >= KEPT - FEW

            await until(is_packed)
            assert len(seen) > 2
            assert client.session.values_held == KEPT + 2
            here.engine.end(client.session)
            await until(lambda: not here.device.in_use)

    run(test())
