"""What is left of a session that has ended: nothing that only a full garbage collection would find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from fusewire_protos import dtypes
from fusewire_protos.frames import INLINE_BYTES, Entry, Fetch, Upload
from fusewire_protos.shapes import Spec
from fusewire_server import engine
from fusewire_server.orders import Order, Release
from tests.server.parts import segment, upload_beside
from tests.server.world import NEGATE, InstantPlanner, run, until, world

LARGE = Spec(dtypes.uint8, (2 * INLINE_BYTES,))


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize(
    "entries",
    [
        [Fetch(1, 10)],
        [Upload(20, LARGE, 0), Fetch(1, 20), Fetch(2, 20)],
        [upload_beside(30), Fetch(1, 30), segment(NEGATE, 100, 30), Fetch(2, 100)],
        [segment(NEGATE, 100, 10), segment(NEGATE, 200, 100), Fetch(1, 200)],
        [Fetch(1, 99), segment(NEGATE, 100, 99)],
    ],
    ids=["answered", "beside the stream", "awaits an upload", "queued", "failed"],
)
def test_a_session_that_ends_is_gone_with_all_it_held(entries: list[Entry]) -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner(), unread_bytes=LARGE.size_bytes) as here:
            stays, goes = here.client("stays"), here.client("goes")
            session = ref(goes.session)
            here.engine.hold()
            goes.send(*entries, tensors=[bytes(LARGE.size_bytes)])
            here.engine.end(goes.session)
            here.engine.unhold()
            del goes
            stays.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            await stays.fetched(1)
            await until(lambda: session() is None)

    run(test())


def test_of_many_values_of_an_ended_session_some_go_back_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_KILLED", 1)

    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            told: list[Order] = []
            order = here.engine._device_thread.order

            def watched(one: Order) -> None:
                told.append(one)
                order(one)

            monkeypatch.setattr(here.engine._device_thread, "order", watched)
            here.engine.end(client.session)
            assert [len(one.values) for one in told if isinstance(one, Release)] == [1]
            await until(lambda: here.engine.memory.live_bytes == 0)
            assert [len(one.values) for one in told if isinstance(one, Release)] == [1, 1]

    run(test())
