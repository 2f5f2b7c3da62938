"""Answers from the engine's tables: arrays of a session in pages, the queue, the pool, and slow submissions."""

from __future__ import annotations

import asyncio

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.base import BlockCount
from fusewire_kernels.devices.null import NullPlan
from fusewire_protos.frames import Fetch, Free
from fusewire_server.inspect.live_views import ArrayPage, BlockView
from fusewire_server.inspect.loop_calls import LoopCalls
from fusewire_server.inspect.questions import Questions
from fusewire_server.inspect.snapshot import shown_id
from fusewire_server.programs.slow_log import MOST_KEPT, SLOW_NS
from tests.server.parts import SIZE_BYTES, segment, upload_beside
from tests.server.world import ADD, NEGATE, PAIR, Client, InstantPlanner, WatchedDevice, World, load, run, until, world


class SlowDevice(WatchedDevice):
    """A device on which each launch takes `launch_ns`."""

    launch_ns = 0

    def launch(self, loaded: NullPlan, table: npt.NDArray[np.int64]) -> None:
        super().launch(loaded, table)
        self.clock_ns += self.launch_ns


def questions_of(here: World) -> Questions:
    return Questions(here.engine, LoopCalls(asyncio.get_running_loop().call_soon_threadsafe, 10.0))


async def arrays(here: World, client: Client, after: int = 0, limit: int = 1000) -> ArrayPage:
    page = await questions_of(here).arrays(shown_id(client.session.session_id), after, limit)
    assert page is not None
    return page


def test_an_array_is_told_with_the_op_that_computes_it_and_an_upload_without() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(PAIR, 100, 10, 11), upload_beside(12))
            await client.idle()
            told = {view.handle: view for view in (await arrays(here, client)).arrays}
            assert {handle: (view.base, view.op) for handle, view in told.items()} == {
                10: (10, None),
                11: (11, None),
                12: (12, None),
                **{handle: (100, handle - 100) for handle in told if handle >= 100},
            }
            assert len(told) == 6
            assert (told[10].dtype, told[10].shape, told[10].bytes) == ("float32", (4,), SIZE_BYTES)
            assert (told[10].state, told[12].state) == ("ready", "awaited")
            assert all(0 <= view.age_s < 10 for view in told.values())

    run(test())


def test_results_that_failed_are_told_with_their_ops() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 99), Fetch(1, 100))
            assert await client.failure(1) == "unknown_handle"
            told = (await arrays(here, client, after=99)).arrays
            assert [(view.handle, view.state, view.base, view.op) for view in told] == [(100, "failed", 100, 0)]

    run(test())


def test_pages_hold_each_array_once_although_others_go() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(*[segment(NEGATE, base, 10) for base in (400, 100, 300, 200)])
            first = await arrays(here, client, limit=3)
            client.send(Free((11, 100)))
            second = await arrays(here, client, after=first.next or 0, limit=3)
            assert [[view.handle for view in page.arrays] for page in (first, second)] == [
                [10, 11, 100],
                [200, 300, 400],
            ]
            assert (first.next, second.next) == (100, None)

    run(test())


def test_there_are_no_arrays_of_an_unknown_session() -> None:
    async def test() -> None:
        async with world() as here:
            here.client()
            assert await questions_of(here).arrays("0123456789ab", 0, 10) is None

    run(test())


def test_the_queue_is_told_by_tenant_in_the_order_of_turns_and_by_program() -> None:
    async def test() -> None:
        async with world() as here:
            one, other = here.client("a", "lab"), here.client("b", "guest")
            one.send(segment(NEGATE, 90, 10))
            await one.idle()
            here.engine.hold()
            one.send(*[segment(NEGATE, 100 + index, 10) for index in range(2)])
            other.send(segment(ADD, 100, 10, 11))
            told = await questions_of(here).queue()
            here.engine.unhold()
            assert (told.rows, told.orders_in_flight) == (3, 0)
            assert {(each.tenant, each.rows) for each in told.tenants} == {("lab", 2), ("guest", 1)}
            assert [each.device_ns for each in told.tenants] == sorted(each.device_ns for each in told.tenants)
            digests = [one.session.programs[number].digest.hex() for number in (NEGATE, ADD)]
            assert [(each.digest, each.rows) for each in told.programs] == [(digests[0], 2), (digests[1], 1)]
            await one.idle()
            await other.idle()

    run(test())


def test_the_pool_is_told_by_sums_and_by_blocks() -> None:
    class CountingDevice(WatchedDevice):
        def block_counts(self) -> list[BlockCount]:
            return [BlockCount(SIZE_BYTES, 3, len(self.in_use))]

    async def test() -> None:
        async with world(CountingDevice(memory_bytes=1 << 20)) as here:
            client = here.client()
            client.send(Fetch(1, 11), Free((11,)))
            await client.value(1)
            await until(lambda: len(here.device.in_use) == 1)
            told = questions_of(here).pool()
            assert (told.peak_bytes, told.free_bytes) == (2 * SIZE_BYTES, (1 << 20) - SIZE_BYTES)
            assert (told.live_bytes, told.pool_bytes) == (SIZE_BYTES, 0)
            assert told.blocks == (BlockView(SIZE_BYTES, 3, 1),)

    run(test())


def test_a_submission_that_takes_long_is_told_with_its_phases_and_a_short_one_is_not() -> None:
    async def test() -> None:
        device = SlowDevice()
        async with world(device, InstantPlanner()) as here:
            client, submissions = here.client(), here.engine.submissions
            await load(here, client)
            device.launch_ns = SLOW_NS - 1
            client.send(segment(NEGATE, 100, 10))
            await client.idle()
            assert (await questions_of(here).slow_log(10)).entries == ()
            device.launch_ns = SLOW_NS
            client.send(segment(ADD, 200, 10, 11))
            await client.idle()
            (entry,) = (await questions_of(here).slow_log(10)).entries
            assert len(submissions.slow_log) == 1
            assert (entry.session, entry.base, entry.op) == (shown_id(client.session.session_id), 200, 0)
            assert (entry.program, entry.tier) == (client.session.programs[ADD].digest.hex(), 1)
            assert (entry.rows, entry.ops, entry.phases.device_s) == (1, 1, SLOW_NS / 1e9)

    run(test())


def test_the_slow_log_is_bounded_and_tells_the_newest_first() -> None:
    async def test() -> None:
        device = SlowDevice()
        async with world(device, InstantPlanner()) as here:
            client, submissions = here.client(), here.engine.submissions
            await load(here, client)
            device.launch_ns = SLOW_NS
            for index in range(MOST_KEPT + 2):
                client.send(segment(PAIR, 100 + 10 * index, 10, 11))
                await client.idle()
            assert len(submissions.slow_log) == MOST_KEPT
            newest = (await questions_of(here).slow_log(2)).entries
            assert [(entry.base, entry.op) for entry in newest] == [(1390, None), (1380, None)]

    run(test())
