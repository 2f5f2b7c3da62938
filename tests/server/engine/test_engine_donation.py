"""Which inputs are written over: only those that nobody can read again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.plan.plan import InputColumn, OutputColumn, Plan
from fusewire_protos.frames import Entry, Fetch, Free
from fusewire_server.config import config
from tests.server.parts import segment
from tests.server.world import ADD, NEGATE, PAIR, InstantPlanner, WatchedDevice, columns, load, run, world


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
        async with world(planner=InstantPlanner(), settings=config.Device(donation=False)) as here:
            client = here.client()
            await load(here, client)
            client.send(segment(NEGATE, 100, 10, dying=(0,)))
            await client.idle()
            assert here.engine.memory.donations == 0

    run(test())


def test_op_by_op_no_input_is_overwritten_because_the_row_may_begin_again() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(PAIR, 100, 10, 11, dying=(0, 1)), Fetch(1, 100), Fetch(2, 101), Fetch(3, 102))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert await client.value(2) == [-0.0, -1.0, -2.0, -3.0]
            assert await client.value(3) == [0.0, 2.0, 4.0, 6.0]
            assert here.engine.memory.donations == 0

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
