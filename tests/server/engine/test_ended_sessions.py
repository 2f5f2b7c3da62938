"""What is left of a session that has ended: nothing that only a full garbage collection would find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from fusewire_protos.frames import INLINE_BYTES, Entry, Fetch, Upload
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.device.orders import Order, Release
from fusewire_server.engine import ended_sessions
from tests.server.parts import SIZE_BYTES, segment, upload_beside
from tests.server.world import DEADLINE_S, NEGATE, Client, InstantPlanner, WatchedDevice, World, run, until, world

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
            queue = ref(goes.session.queue)  # which only the session holds
            here.engine.hold()
            goes.send(*entries, tensors=[bytes(LARGE.size_bytes)])
            here.engine.end(goes.session)
            here.engine.unhold()
            del goes
            stays.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            await stays.fetched(1)
            await until(lambda: queue() is None)

    run(test())


def _watched(here: World, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The handles of each release that the device thread is told of from now on."""
    ended: list[list[int]] = []
    order = here.engine._device_thread.order

    def watched(*orders: Order) -> None:
        ended.extend([value.handle for value in one.values] for one in orders if isinstance(one, Release))
        order(*orders)

    monkeypatch.setattr(here.engine._orders, "_hand_over", watched)
    return ended


def test_of_many_values_of_an_ended_session_some_go_back_in_each_turn_the_oldest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ended_sessions, "MOST_FREED_AT_ONCE", 1)

    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            released = _watched(here, monkeypatch)
            here.engine.end(client.session)
            assert released == [[10]]
            await until(lambda: here.engine.memory.live_bytes == 0)
            assert released == [[10], [11]]
            assert not here.engine._ended_sessions

    run(test())


def test_the_large_values_of_an_ended_session_go_back_before_anything_else_is_ordered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ended_sessions, "MOST_FREED_AT_ONCE", 1)

    async def test() -> None:
        room_bytes = 2 * LARGE.size_bytes + 2 * SIZE_BYTES
        async with world(WatchedDevice(memory_bytes=room_bytes)) as here:
            goes, stays = here.client("goes"), here.engine.open("lab", "stays", "nowhere")
            goes.send(Upload(20, LARGE, 0), Upload(21, LARGE, 0), tensors=[bytes(LARGE.size_bytes)])
            await goes.idle()
            here.engine.end(goes.session)
            others = Client(here.engine, stays)
            others.send(Upload(1, LARGE, 0), Upload(2, LARGE, 0), Fetch(1, 2), tensors=[bytes(LARGE.size_bytes)])
            assert (await others.fetched(1)).failure is None

    run(test())


def test_a_server_that_stops_gives_back_what_sessions_held_that_have_just_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ended_sessions, "MOST_FREED_AT_ONCE", 1)

    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            here.engine.end(client.session)
            here.engine.stop(DEADLINE_S)
            assert here.engine.memory.live_bytes == 0

    run(test())
