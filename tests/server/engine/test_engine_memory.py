"""What finds no room on the device, and what counts as taken."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices.base import Block, Device
from fusewire_kernels.unfused.steps import Step
from fusewire_protos import frames
from fusewire_protos.errors import CaseError, OutOfMemory
from fusewire_protos.frames import Fetch, Free, Segment, Upload
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import build
from fusewire_server.config import config
from fusewire_server.device import orders, sliced_read
from fusewire_server.device.large_read import LargeRead
from fusewire_server.device.unfused.iteration import Iteration
from tests.segments import loop_of
from tests.server.parts import SIZE_BYTES, VECTOR, chain, new, op, segment, upload, upload_beside
from tests.server.world import DATA, NEGATE, PAIR, WatchedDevice, run, staged, until, world


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


def test_a_loop_whose_op_found_no_memory_once_brings_no_value_and_keeps_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last iterations are ordered before the device says that an op of the first ones has failed."""
    real, refused = Iteration._address_of_result, list[None]()

    def refuse_first(self: Iteration, step: Step, *, is_last: bool) -> int:
        if not refused:
            refused.append(None)
            raise OutOfMemory("no memory now")
        return real(self, step, is_last=is_last)

    monkeypatch.setattr(Iteration, "_address_of_result", refuse_first)
    body = build([VECTOR], [], [op("abs", 0), op("negative", 1)], (1,), [(0, 2)])

    async def test() -> None:
        async with world(settings=config.Device(submission_s=1e-9)) as here:
            here.engine.hold()
            client = here.client()
            client.send(
                loop_of(Segment(7, 100, (10,), (), (), ()), 2, 2, (1,)),
                Fetch(1, 103),
                segment(NEGATE, 200, 103),
                Fetch(2, 200),
                programs=frames.encode_programs([new(7, body)]),
            )
            here.engine.unhold()
            assert await client.failure(1) == "out_of_memory"
            assert await client.failure(2) == "out_of_memory"
            await client.idle()
            uploads_bytes = 2 * SIZE_BYTES
            client.send(Free((103, 200)))
            await until(lambda: here.engine.memory.live_bytes == uploads_bytes)

    run(test())


def test_a_fetch_for_which_the_host_has_no_room_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_device: Device, _block: Block, _size_bytes: int) -> LargeRead:
        raise MemoryError

    monkeypatch.setattr(orders, "LARGE_BYTES", len(DATA) - 1)
    monkeypatch.setattr(sliced_read, "LargeRead", refuse)

    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(Fetch(1, 10))
            failure = (await client.fetched(1)).failure
            assert failure is not None
            assert failure.case.name == "out_of_memory"
            assert failure.text == f"the host has no memory for a value of {len(DATA)} bytes"

    run(test())


def test_a_row_that_fits_goes_on_beside_one_that_does_not() -> None:
    async def test() -> None:
        device = WatchedDevice(memory_bytes=9 * SIZE_BYTES)  # the uploads, and the results of one row
        async with world(device) as here:
            here.engine.hold()
            clients = [here.client("a"), here.client("b")]
            for client in clients:
                client.send(segment(PAIR, 100, 10, 11), Fetch(1, 100))
            here.engine.unhold()
            outcomes = [(await client.fetched(1)).failure for client in clients]
            assert [failure is None for failure in outcomes].count(True) == 1

    run(test())


def test_intermediate_values_of_a_run_op_by_op_count_too_and_what_does_not_fit_names_the_setting() -> None:
    async def test() -> None:
        async with world(WatchedDevice(memory_bytes=3 * SIZE_BYTES)) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            client.send(Free((100,)))
            longer = frames.encode_programs([new(4, chain(("negative", "negative")))])
            client.send(segment(4, 200, 10), Fetch(2, 201), programs=longer)
            failure = (await client.fetched(2)).failure
            assert failure is not None
            assert (failure.case.name, "device.memory_bytes" in failure.text) == ("out_of_memory", True)
            assert failure.text.startswith("op 0 negative: ")

    run(test())


@pytest.mark.parametrize("tenant", ["a", "b"])
def test_what_does_not_fit_tells_of_the_tenants_sessions_without_a_connection(tenant: str) -> None:
    async def test() -> None:
        async with world(WatchedDevice(memory_bytes=3 * SIZE_BYTES), resume_grace_s=40) as here:
            lost, other = here.client("a", "a"), here.client("b", tenant)
            lost.send(upload(20))
            await lost.idle()
            here.engine.detach(lost.session, lost.session.epoch)
            other.send(upload(20), upload(21), upload(22), Fetch(1, 22))
            failure = (await other.fetched(1)).failure
            assert failure is not None
            of_lost = (
                "; 1 sessions that lost their connection keep their arrays until limits.resume_grace_s = 40 has passed"
            )
            assert failure.text.endswith(of_lost) == (tenant == "a")

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


def test_a_freed_upload_counts_as_its_sessions_until_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            before_bytes = client.session.live_bytes
            reasons: list[object] = []
            order = here.engine._device_thread.order
            monkeypatch.setattr(here.engine._orders, "_hand_over", reasons.append)
            client.send(upload_beside(20), Free((20,)))
            value = client.session.values[20]
            here.engine.uploaded(client.session, value, staged(here.device))
            assert client.session.live_bytes == before_bytes + len(DATA)
            monkeypatch.undo()
            for each in reasons:
                order(each)  # type: ignore[arg-type]  # they are what was ordered
            await until(lambda: client.session.live_bytes == before_bytes)
            assert 20 not in client.session.values

    run(test())


def test_out_of_memory_names_the_setting_and_the_op() -> None:
    async def test() -> None:
        async with world(WatchedDevice(memory_bytes=2 * len(DATA))) as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            failure = (await client.fetched(1)).failure
            assert failure is not None
            assert failure.text.startswith("op 0 negative: ")
            assert failure.text.endswith(f"; device.memory_bytes = {2 * len(DATA)}")

    run(test())


def test_all_that_stand_in_for_failed_inputs_share_one_block() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            large = Spec(dtypes.float32, (1000,))
            wide = build([VECTOR, large, large, large], [], [op("negative", number) for number in range(4)], range(4))
            numbered = frames.encode_programs([new(9, wide)])
            await client.idle()
            before_bytes = here.engine.memory.peak_bytes
            client.send(segment(9, 100, 10, 997, 998, 999), Fetch(1, 100), Fetch(2, 101), programs=numbered)
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            assert await client.failure(2) == "unknown_handle"
            results_bytes = len(DATA) + 3 * large.size_bytes
            assert here.engine.memory.peak_bytes == before_bytes + results_bytes + large.size_bytes

    run(test())
